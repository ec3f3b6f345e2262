"""Requests about logins, ACLs, SCRAM users and delegation tokens."""
