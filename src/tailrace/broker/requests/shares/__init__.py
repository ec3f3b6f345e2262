"""Requests about share groups and about the state that is kept of them. Share fetches are in data/.

Members and offsets are the group coordinator's (`coordination/groups.py`); the state of share partitions is kept by the
share coordinator (`broker/shares/share_states.py`), to which other brokers send the …_state requests.

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
