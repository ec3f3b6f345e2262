"""Tiered storage on this broker: when its tasks run, the topic with their metadata, reads for clients.

The package `tiers` has the tasks themselves. They run in steps on the loop; copies, deletions and reads of a store run
on threads of their own.

    remote_logs.py     RemoteLogs: the remote logs of the partitions that are hosted here, and their tasks
    remote_fetch.py    DelayedRemoteFetch: a fetch that waits for the store
    remote_reads.py    RemoteReads: reads for fetches, kept for the client's retry
    metadata_topic.py  MetadataTopic: writes `__remote_log_metadata`, and reads it back
    metadata_snapshot.py  SnapshotFile: the metadata of the last run, so that a start does not read the whole topic
    store_calls.py     StoreCalls: the calls of the store and their deadlines
    remote_environment.py  what these parts need of the broker around them
"""
