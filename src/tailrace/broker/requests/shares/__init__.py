"""Requests about share groups and their state."""
