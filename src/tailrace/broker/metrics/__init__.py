"""Metrics of the broker, and metrics that clients push to it."""
