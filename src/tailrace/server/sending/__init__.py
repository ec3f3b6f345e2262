"""Replies on their way to sockets."""
