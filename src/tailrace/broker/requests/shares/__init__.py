"""Requests about share groups and their persisted state. Share fetches are in data/.

The group coordinator keeps members and offsets (`coordination/groups.py`). The share coordinator keeps the state of
share partitions (`broker/shares/share_coordinator.py`). Other brokers send it the …_state requests.

    share_group_heartbeat.py           ShareGroupHeartbeat
    share_group_describe.py            ShareGroupDescribe
    describe_share_group_offsets.py    DescribeShareGroupOffsets
    alter_share_group_offsets.py       AlterShareGroupOffsets
    delete_share_group_offsets.py      DeleteShareGroupOffsets
    initialize_share_group_state.py    InitializeShareGroupState
    read_share_group_state.py          ReadShareGroupState
    read_share_group_state_summary.py  ReadShareGroupStateSummary
    write_share_group_state.py         WriteShareGroupState
    delete_share_group_state.py        DeleteShareGroupState
"""
