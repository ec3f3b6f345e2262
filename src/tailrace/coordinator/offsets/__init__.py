"""Committed offsets of groups: who may commit, their records, and their state.

OffsetCommit ──► offset_commits (checks) ──► offset_bytes (records) ──► append ──► committed_offsets (replay)

offset_commits.py      OffsetCommits: commits, fetches and deletions, checked against the group
committed_offsets.py   CommittedOffsets: the offsets of all groups of a shard, pending ones of transactions, expiry
offset_bytes.py        records of commits, encoded and decoded directly as bytes
commit_replay.py       CommitReplay: many commits of a batch replayed at once while a log is loaded
"""
