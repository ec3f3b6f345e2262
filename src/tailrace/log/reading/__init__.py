"""Reads: find the bytes of a segment for an offset or a time.

log_read.py          finds the bytes from an offset on
small_read.py        a read that returns a few bytes at once
timestamp_lookup.py  finds the first record at or after a time
"""
