"""Reads from remote segments. A read runs in steps: lookups on the loop, everything that waits beside it.

index_cache.py   IndexCache: the indexes of remote segments, kept on the local disk
remote_read.py   finds the bytes from an offset on, with the aborted transactions
remote_reader.py  RemoteReader: the interface for fetches
remote_times.py  finds the first record at or after a time
"""
