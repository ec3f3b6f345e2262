"""Groups of a cluster: describe, join, commit, reset, delete.

groups.py              lists, describes and deletes groups, with their lag
group_description.py   DescribedGroup: state and members of a group of any protocol
group_offsets.py       reads and writes the offsets of a group without members
group_member.py        GroupMember: joins a group, sends heartbeats and commits
group_reset.py         computes reset targets: earliest, latest, an offset, a time, a shift
share_groups.py        share groups (KIP-932)
streams_groups.py      streams groups (KIP-1071)
"""
