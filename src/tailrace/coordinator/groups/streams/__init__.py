"""Streams groups (KIP-1071): Kafka Streams applications whose tasks the coordinator assigns.

The engine is in `epoch/`. This package adds the topology, its internal topics, tasks and their assignor, and endpoints.

    StreamsGroupHeartbeat ──► streams_groups ──► topology ──► epoch ──► task_assignor ──► reconciliation ──► records

    streams_groups.py           StreamsGroups: the heartbeat, step by step; leaving
    streams_group.py            StreamsGroup: topology, holders of tasks, facts that are not in the log; replay
    streams_member.py           StreamsMember: process, endpoint and tasks of a member
    streams_heartbeat.py        the request, its result, and checks of the tasks that it reports
    streams_topology.py         StreamsTopology: subtopologies and topics, as the first member reports them
    configured_topology.py      a topology configured with the existing topics: tasks, missing topics, problems
    streams_target.py           the target assignment of all members
    task_assignor.py            the assignor `sticky`
    task_holders.py             the processes that have each task
    streams_reconciliation.py   one step of a member towards its target tasks
    streams_response.py         tasks, endpoints and statuses of the heartbeat response
    streams_records.py          messages and fields of the records
    streams_description.py      the StreamsGroupDescribe response
    streams_settings.py         the configuration of a group
"""
