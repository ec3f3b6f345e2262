"""Committed offsets of groups: checks of the committer, records, and state.

OffsetCommit ──► offset_commits (checks) ──► offset_records (encoder) ──► append ──► committed_offsets (replay: decoder)

offset_commits.py      OffsetCommits: commits, fetches and deletions, checked against the group
committed_offsets.py   CommittedOffsets: the offsets of all groups of a shard, pending ones of transactions, expiry
forgotten_topics.py    ForgottenTopics: deletes the offsets of deleted topics, of some groups at a time
metadata_limit.py      the limit of the metadata of a commit, offset.metadata.max.bytes
offset_records.py      OffsetRecords: the records of a commit; tombstones
offset_kernels.py      the encoder and the decoder of those records (compiled)
"""
