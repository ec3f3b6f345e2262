"""Tiered storage: the segments of a partition that are in a remote store. The package may import log and all below it.

remote_segment.py  RemoteSegment: the metadata of one copied segment, as in `__remote_log_metadata`
remote_partition.py  RemotePartition: the remote log of one partition, and the state of its tasks
steps.py           RemoteTask: work in steps, on the loop and beside it
copying.py         copies sealed segments
deletion.py        deletes remote segments
expiration.py      the remote segments that retention deletes
remote_counters.py  RemoteCounters: the traffic with the store
reading/           reads of records and lookups by time
lineage.py         the segments that agree with the leader epochs of a log
metadata/          the records about segments, and the cache that they fill
stores/            the remote stores: where copied segments are kept, and in which layout
"""
