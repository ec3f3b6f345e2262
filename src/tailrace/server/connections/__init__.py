"""Listening, accepting, and the connections that are open."""
