"""The metadata of remote segments: the records in `__remote_log_metadata`, and the state that they add up to.

A record adds a segment or changes its state. All records about a user's partition are in one partition of the topic.

segment_records.py     records as bytes: SegmentUpdate and PartitionDeletion, beside RemoteSegment
metadata_partition.py  the partition of the topic that a user's partition belongs to
segment_cache.py       SegmentCache: the remote segments of one partition, found by leader epoch and offset
"""
