"""Internal errors that the broker survives, and log lines at a limited rate.

internal_errors.py   InternalErrors: logs and counts exceptions that only a bug can raise
limited_log.py       LimitedLog: one log line for many similar events
"""
