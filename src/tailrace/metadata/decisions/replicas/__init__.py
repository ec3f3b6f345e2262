"""Decisions about the replicas of partitions.

replica_placement.py   replicas of new partitions, over racks and brokers
partition_change.py    the next state of a partition: elections, ISR changes, reassignments
leadership.py          leaders and ISR when brokers come and go; ElectLeaders
isr_changes.py         AlterPartition: a leader proposes in-sync replicas
leader_balance.py      elections of preferred and of unclean leaders that nobody asks for
reassignment.py        AlterPartitionReassignments, ListPartitionReassignments, replicas in log directories
"""
