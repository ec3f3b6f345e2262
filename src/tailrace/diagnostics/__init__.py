"""Errors that the broker survives, and log lines at a limited rate."""
