"""Requests about committed offsets of groups.

offset_commit.py  OffsetCommit
commit_plan.py    CommitPlan: the partitions of a commit, and their errors
offset_fetch.py   OffsetFetch
offset_delete.py  OffsetDelete
"""
