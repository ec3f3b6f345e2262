"""The in-sync replicas of a partition led here, and how they change.

A follower has caught up or lags ─► isr_changes.py ─► isr_proposals.py ─► the controller ─► isr_state.py

isr_state.py      IsrState: committed and proposed in-sync replicas
isr_changes.py    IsrChanges: when a replica joins or leaves, and the controller's decision
isr_proposals.py  IsrProposals: sends AlterPartition until the controller decides
"""
