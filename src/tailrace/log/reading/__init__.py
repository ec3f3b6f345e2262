"""Reads: from an offset or a time to the bytes of a segment.

log_read.py          finds the bytes from an offset on
small_read.py        a read that returns a few bytes at once
timestamp_lookup.py  finds the first record at or after a time
"""
