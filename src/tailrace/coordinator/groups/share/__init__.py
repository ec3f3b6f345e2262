"""Share groups (KIP-932): members share partitions and acknowledge single records.

The engine is in `epoch/`. This package adds the assignor and the partitions whose state the share coordinator keeps.

    ShareGroupHeartbeat ──► share_groups ──► epoch ──► assignor ──► records; new partitions ──► Initialization
    share coordinator ──► share_offsets.initialized ──► the next heartbeat assigns them

    share_groups.py      ShareGroups: the heartbeat, step by step; leaving
    share_group.py       ShareGroup: members in Kafka's order, the topics; the ShareGroupDescribe response
    share_member.py      ShareMember: subscription and partitions of a member
    share_heartbeat.py   the request and its result
    share_target.py      the target assignment of all members
    share_assignor.py    the assignor `simple`
    share_topics.py      ShareTopics: partitions whose state is being initialized, initialized, or being deleted
    share_offsets.py     ShareOffsets: results of the share coordinator; start offsets altered and deleted
    share_records.py     messages and fields of the records
    share_settings.py    the configuration of a group
"""
