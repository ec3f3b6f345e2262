"""Requests about the offsets that groups commit.

offset_commit.py  OffsetCommit
offset_fetch.py   OffsetFetch
offset_delete.py  OffsetDelete
"""
