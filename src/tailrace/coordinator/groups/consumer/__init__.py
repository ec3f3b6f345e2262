"""Consumer groups (KIP-848): the coordinator assigns partitions; a member revokes a partition before another
gets it.

The engine is in `epoch/`. This package adds subscriptions by name and by regular expression, static members, assignors,
and members that still use the classic protocol.

    ConsumerGroupHeartbeat ──► consumer_groups ──► patterns ──► epoch ──► assignor ──► reconciliation ──► records
    JoinGroup, SyncGroup … of such a group ──► classic_protocol_members ──► consumer_groups

    consumer_groups.py            ConsumerGroups: the heartbeat, step by step; joining, leaving, fencing
    consumer_group.py             ConsumerGroup: static members, patterns, the holder of each partition; replay
    consumer_member.py            ConsumerMember: subscription and partitions of a member
    consumer_heartbeat.py         the request, and the check of a static member
    consumer_reconciliation.py    one step of a member towards its target partitions
    consumer_assignors.py         the target assignment of all members; the assignors `uniform` and `range`
    uneven_assignor.py            `uniform` for members with different subscriptions
    pattern_subscriptions.py      regular expressions: when they are looked up
    topic_patterns.py             regular expressions: RE2, matched in slices
    classic_protocol_members.py   members of a consumer group that use the classic protocol
    consumer_protocol.py          subscriptions and assignments that classic consumers embed in their requests
    group_conversion.py           a classic group becomes a consumer group, and the reverse
    consumer_records.py           messages and fields of the records
    consumer_description.py       the ConsumerGroupDescribe response
    consumer_settings.py          the configuration of a group
"""
