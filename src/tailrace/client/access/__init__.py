"""Access to a cluster: access control lists, SCRAM users and client quotas.

acls.py           lists, adds and removes entries of access control lists
client_quotas.py  lists and changes the quotas of users, client ids and addresses
scram_users.py    lists, sets and removes SCRAM credentials
"""
