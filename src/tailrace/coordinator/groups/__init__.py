"""Groups: the coordinator behind `__consumer_offsets`.

May import: what `coordinator` may.

There are four kinds of groups. In a classic group the members elect a leader, which computes the assignment. In the
other three kinds the coordinator computes it: they share one engine (`epoch/`).

    request ──► GroupCoordinator ──► the group's kind ──► StateChange ──► append ──► GroupCoordinator.replay

    group_coordinator.py  GroupCoordinator: the shard; finds the kind of a group, lists, deletes, expires, replays
    group.py              Group: the interface of all kinds; values of offset commits
    group_settings.py     the broker's configuration of groups and offsets
    classic/              classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup
    epoch/                the engine of consumer, share and streams groups
    consumer/             consumer groups (KIP-848)
    share/                share groups (KIP-932)
    streams/              streams groups (KIP-1071)
"""
