"""The share coordinator: the state behind `__share_group_state`."""
