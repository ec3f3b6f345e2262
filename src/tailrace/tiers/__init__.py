"""Tiered storage: the segments of a partition that are in a remote store. The package may import log and all below it.

remote_segment.py  RemoteSegment: the metadata of one copied segment, as in `__remote_log_metadata`
stores/            the remote stores: where copied segments are kept, and in which layout
"""
