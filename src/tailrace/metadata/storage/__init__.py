"""The metadata log and its snapshots on disk.

metadata_log.py            MetadataLog: `__cluster_metadata-0` of a standalone node
metadata_log_settings.py   MetadataLogSettings: the metadata.log.* configs
log_opening.py             opens a metadata log: files, latest snapshot, following batches
snapshot_store.py          SnapshotStore: when a snapshot is due, and which ones can go
metadata_snapshot.py       reads and writes one snapshot file
snapshot_difference.py     the records that turn one image into another
record_framing.py          metadata records in batches, with their versions
storage_format.py          formats a new directory, as `kafka-storage format --standalone`
migration.py               turns the metadata of a standalone node into a controller's
"""
