"""The share coordinator: the state behind `__share_group_state`.

persisted_state.py     PersistedState: start offset and delivery states of a group in a partition
share_state_shard.py   ShareStateShard: the shard of a partition: snapshots and updates
"""
