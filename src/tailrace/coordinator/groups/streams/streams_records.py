"""Records of streams groups in `__consumer_offsets`: their messages and fields, and the topology record, which only
streams groups have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tailrace.coordinator.groups.epoch.epoch_member import MemberState
from tailrace.coordinator.groups.epoch.epoch_records import EpochMessages, EpochRecords, MessagePair
from tailrace.coordinator.groups.epoch.record_fields import PartitionLists, RecordField, same_fields
from tailrace.coordinator.groups.streams.streams_member import Endpoint, HeldTasks, StreamsMember, Tasks
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

_CURRENT: PartitionLists[str] = PartitionLists(
    StreamsGroupCurrentMemberAssignmentValue.TaskIds, "subtopology_id", is_sorted=True
)
_TARGET: PartitionLists[str] = PartitionLists(
    StreamsGroupTargetAssignmentMemberValue.TaskIds, "subtopology_id", is_sorted=True
)


def _write_endpoint(endpoint: Endpoint | None) -> StreamsGroupMemberMetadataValue.Endpoint | None:
    if endpoint is None:
        return None
    return StreamsGroupMemberMetadataValue.Endpoint(host=endpoint.host, port=endpoint.port)


def _read_endpoint(value: StreamsGroupMemberMetadataValue.Endpoint | None) -> Endpoint | None:
    return None if value is None else Endpoint(value.host, value.port)


def _write_tags(tags: Mapping[str, str]) -> list[StreamsGroupMemberMetadataValue.KeyValue]:
    return [StreamsGroupMemberMetadataValue.KeyValue(key=key, value=tags[key]) for key in sorted(tags)]


def _read_tags(tags: Iterable[StreamsGroupMemberMetadataValue.KeyValue]) -> dict[str, str]:
    return {tag.key: tag.value for tag in tags}


def _write_current(member: StreamsMember) -> dict[str, Any]:
    assigned, to_revoke = member.assigned, member.to_revoke
    return {
        "active_tasks": _CURRENT.write_epochs(assigned.active),
        "standby_tasks": _CURRENT.write(assigned.standby),
        "warmup_tasks": _CURRENT.write(assigned.warmup),
        "active_tasks_pending_revocation": _CURRENT.write_epochs(to_revoke.active),
        "standby_tasks_pending_revocation": _CURRENT.write(to_revoke.standby),
        "warmup_tasks_pending_revocation": _CURRENT.write(to_revoke.warmup),
    }


def _read_current(value: StreamsGroupCurrentMemberAssignmentValue) -> dict[str, Any]:
    return {
        "assigned": HeldTasks(
            _CURRENT.read_epochs(value.active_tasks, value.member_epoch),
            _CURRENT.read(value.standby_tasks),
            _CURRENT.read(value.warmup_tasks),
        ),
        "to_revoke": HeldTasks(
            _CURRENT.read_epochs(value.active_tasks_pending_revocation, value.member_epoch),
            _CURRENT.read(value.standby_tasks_pending_revocation),
            _CURRENT.read(value.warmup_tasks_pending_revocation),
        ),
    }


def _write_target(tasks: Tasks) -> dict[str, Any]:
    return {
        "active_tasks": _TARGET.write(tasks.active),
        "standby_tasks": _TARGET.write(tasks.standby),
        "warmup_tasks": _TARGET.write(tasks.warmup),
    }


def _read_target(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(_TARGET.read(value.active_tasks), _TARGET.read(value.standby_tasks), _TARGET.read(value.warmup_tasks))


STREAMS_RECORDS: Final[EpochRecords[StreamsMember, Tasks]] = EpochRecords(
    messages=EpochMessages(
        group=MessagePair(StreamsGroupMetadataKey, StreamsGroupMetadataValue),
        member=MessagePair(StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
        target_epoch=MessagePair(StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
        target=MessagePair(StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
        current=MessagePair(StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    ),
    new_member=StreamsMember,
    member_fields=[
        *same_fields("instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms"),
        *same_fields("topology_epoch", "process_id"),
        RecordField("user_endpoint", "user_endpoint", _write_endpoint, _read_endpoint),
        RecordField("client_tags", "client_tags", _write_tags, _read_tags),
    ],
    state_codes={
        MemberState.STABLE: 1,
        MemberState.UNREVOKED: 2,
        MemberState.UNRELEASED: 3,
        MemberState.UNKNOWN: 127,
    },
    write_current=_write_current,
    read_current=_read_current,
    write_target=_write_target,
    read_target=_read_target,
)


def streams_group_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """Return the group record. It also has the epoch of the validated topology, and the configs of the assignor."""
    return STREAMS_RECORDS.group_record(
        group_id,
        epoch,
        metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
        ],
    )


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), topology)


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    return [
        *STREAMS_RECORDS.members_tombstones(group_id, member_ids),
        STREAMS_RECORDS.group_tombstone(group_id),
        CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None),
    ]
