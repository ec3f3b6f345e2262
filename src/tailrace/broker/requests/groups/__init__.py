"""Requests about classic, consumer and streams groups.

A handler checks rights, and calls the group's coordinator to change or read its state (`coordination/groups.py`). The
response is sent when the coordinator has its result.

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
    group_description.py         GroupDescription: common code of three describe requests
    group_topics.py              topics of a request, and the client's rights to them
    merged_parts.py              MergedParts: one response from the results of several coordinators
"""
