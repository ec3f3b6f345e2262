"""Bytes to messages and back, no sockets. May import: model."""
