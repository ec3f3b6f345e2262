"""Requests of classic, consumer and streams groups, and their committed offsets."""
