"""The share coordinator: the state behind `__share_group_state`.

share_state.py               ShareState: start offset and delivery states of a group in a partition
share_state_coordinator.py   ShareStateCoordinator: the shard of a partition: snapshots and updates
"""
