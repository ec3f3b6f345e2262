"""Keys and values of streams groups in `__consumer_offsets`, and members read from them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tailrace.coordinator.groups.streams.streams_member import (
    Endpoint,
    HeldTasks,
    StreamsMember,
    StreamsState,
    TaskEpochs,
    Tasks,
    TaskSets,
)
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

_CurrentTasks = StreamsGroupCurrentMemberAssignmentValue.TaskIds
_TargetTasks = StreamsGroupTargetAssignmentMemberValue.TaskIds


def epoch_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """`configs` are what the assignor goes by."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
        ],
    )
    return CoordinatorRecord(StreamsGroupMetadataKey(group_id=group_id), value)


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), topology)


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Who a member is."""
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupMemberMetadataValue.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            StreamsGroupMemberMetadataValue.KeyValue(key=key, value=member.client_tags[key])
            for key in sorted(member.client_tags)
        ],
    )
    return CoordinatorRecord(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """How far a member has come, and what it has."""
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_told_epochs(member.assigned.active),
        standby_tasks=_told(member.assigned.standby),
        warmup_tasks=_told(member.assigned.warmup),
        active_tasks_pending_revocation=_told_epochs(member.to_revoke.active),
        standby_tasks_pending_revocation=_told(member.to_revoke.standby),
        warmup_tasks_pending_revocation=_told(member.to_revoke.warmup),
    )
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def _told(tasks: TaskSets) -> list[_CurrentTasks]:
    return [_CurrentTasks(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def _told_epochs(tasks: TaskEpochs) -> list[_CurrentTasks]:
    return [
        _CurrentTasks(
            subtopology_id=name,
            partitions=sorted(tasks[name]),
            assignment_epochs=[tasks[name][number] for number in sorted(tasks[name])],
        )
        for name in sorted(tasks)
    ]


def target_record(group_id: str, member_id: str, tasks: Tasks) -> CoordinatorRecord:
    def told(sets: TaskSets) -> list[_TargetTasks]:
        return [_TargetTasks(subtopology_id=name, partitions=sorted(sets[name])) for name in sorted(sets)]

    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=told(tasks.active), standby_tasks=told(tasks.standby), warmup_tasks=told(tasks.warmup)
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


# Tombstones


def _current_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def _target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def _member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Everything that is known of a member, in the order in which it can be taken back."""
    return [
        _current_tombstone(group_id, member_id),
        _target_tombstone(group_id, member_id),
        _member_tombstone(group_id, member_id),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    member_ids = list(member_ids)
    return [
        *(_current_tombstone(group_id, member_id) for member_id in member_ids),
        *(_target_tombstone(group_id, member_id) for member_id in member_ids),
        CoordinatorRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in member_ids),
        CoordinatorRecord(StreamsGroupMetadataKey(group_id=group_id), None),
        CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None),
    ]


# Read again


def with_metadata(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def with_current(member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    known = value.state in StreamsState._value2member_map_
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=StreamsState(value.state) if known else StreamsState.UNKNOWN,
        assigned=HeldTasks(
            _read_epochs(value.active_tasks, value.member_epoch), _read(value.standby_tasks), _read(value.warmup_tasks)
        ),
        to_revoke=HeldTasks(
            _read_epochs(value.active_tasks_pending_revocation, value.member_epoch),
            _read(value.standby_tasks_pending_revocation),
            _read(value.warmup_tasks_pending_revocation),
        ),
    )


def _read(told: Iterable[_CurrentTasks | _TargetTasks]) -> TaskSets:
    return {tasks.subtopology_id: frozenset(tasks.partitions) for tasks in told}


def _read_epochs(told: Iterable[_CurrentTasks], member_epoch: int) -> TaskEpochs:
    """Where no epochs were kept with the tasks, they are as old as the member's own."""
    found = {}
    for tasks in told:
        epochs = tasks.assignment_epochs
        if epochs is None or len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        found[tasks.subtopology_id] = dict(zip(tasks.partitions, epochs, strict=True))
    return found


def read_target(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(_read(value.active_tasks), _read(value.standby_tasks), _read(value.warmup_tasks))
