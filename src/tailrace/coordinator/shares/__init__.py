"""What share groups remember of a partition: the shard behind `__share_group_state`.

May import: what `tailrace.coordinator` may.
"""
