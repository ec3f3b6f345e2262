"""Requests about classic, consumer and streams groups.

A handler checks rights, and asks the group's coordinator for a change or for its state (`coordination/groups.py`). The
response is sent when the coordinator has answered.

    find_coordinator.py          FindCoordinator
    join_group.py                JoinGroup
    sync_group.py                SyncGroup
    heartbeat.py                 Heartbeat
    leave_group.py               LeaveGroup
    consumer_group_heartbeat.py  ConsumerGroupHeartbeat
    streams_group_heartbeat.py   StreamsGroupHeartbeat
    list_groups.py               ListGroups
    describe_groups.py           DescribeGroups
    consumer_group_describe.py   ConsumerGroupDescribe
    streams_group_describe.py    StreamsGroupDescribe
    delete_groups.py             DeleteGroups
    group_description.py         GroupDescription: the common walk of the describe requests of three kinds
    group_topics.py              the topics of a request that a client may see or read
    merged_parts.py              MergedParts: one response from the answers of several coordinators
"""
