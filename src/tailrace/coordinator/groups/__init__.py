"""Groups: the coordinator behind `__consumer_offsets`.

May import: what `coordinator` may. `group_coordinator.py` is the shard; groups, members and committed offsets have a
module each, and what members do to a group has one per request.
"""
