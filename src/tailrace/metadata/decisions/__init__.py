"""Decisions of the controller: a request and an image give records."""
