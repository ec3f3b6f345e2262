"""Requests about the offsets that groups commit.

offset_commit.py  OffsetCommit
commit_plan.py    CommitPlan: the partitions of a commit, and their errors
offset_fetch.py   OffsetFetch
offset_delete.py  OffsetDelete
"""
