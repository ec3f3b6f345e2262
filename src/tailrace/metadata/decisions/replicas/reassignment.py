"""AlterPartitionReassignments, ListPartitionReassignments and the placing of replicas in log directories.

A reassignment first adds replicas, and removes others when the new ones are in sync. A leader's ISR change completes it
(`partition_change.py`). A reassignment that only removes replicas is complete at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailrace.metadata.controller.control_state import NO_ERROR, ApiError, ControlState, Plan
from tailrace.metadata.decisions.replicas.leadership import leader_and_isr_changes, partition_change
from tailrace.metadata.decisions.replicas.partition_change import Election, PartitionChange
from tailrace.metadata.decisions.topic_creation import check_replicas
from tailrace.metadata.image.image import TopicImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.protocol import messages
from tailrace.protocol.message import Message


def plan_alter_reassignments(
    state: ControlState, request: messages.AlterPartitionReassignmentsRequest
) -> Plan[messages.AlterPartitionReassignmentsResponse]:
    response = messages.AlterPartitionReassignmentsResponse(
        error_message=None if request.topics else "",
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    records: list[Message] = []
    for topic in request.topics:
        answer = messages.AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=topic.name)
        response.responses.append(answer)
        for one in topic.partitions:
            try:
                change = _reassignment(state, topic.name, one, request.allow_replication_factor_change)
                record = change.build()
                if record is not None:
                    records.append(record)
                error = NO_ERROR
            except KafkaError as refusal:
                error = ApiError.of(refusal)
            answer.partitions.append(
                messages.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                    partition_index=one.partition_index, error_code=error.code, error_message=error.message
                )
            )
    return Plan(records, response)


def _reassignment(
    state: ControlState,
    name: str,
    asked: messages.AlterPartitionReassignmentsRequest.ReassignablePartition,
    may_change_factor: bool,
) -> PartitionChange:
    topic = state.image.topics.get(name)
    partition = topic.partitions.get(asked.partition_index) if topic else None
    if topic is None or partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {name}-{asked.partition_index} does not exist"
        )
    change = partition_change(state, topic, asked.partition_index)
    if asked.replicas is None:
        return _cancel(state, topic, partition, change)
    return _reassign(state, partition, list(asked.replicas), may_change_factor, change)


def _cancel(
    state: ControlState, topic: TopicImage, partition: PartitionRegistration, change: PartitionChange
) -> PartitionChange:
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    unclean = state.configs.allows_unclean_election(state.image, topic.name)
    replicas = [one for one in partition.replicas if one not in partition.adding_replicas]
    isr = [one for one in partition.isr if one not in partition.adding_replicas]
    if not isr:
        if not replicas:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "the reassignment cannot be cancelled: none of the replicas existed before it",
            )
        if not unclean:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "the reassignment cannot be cancelled: no replica from before it is in sync",
            )
        isr = replicas[:1]
    election = Election.UNCLEAN if unclean else Election.ONLINE
    return replace(change, isr=isr, replicas=replicas, removing=[], adding=[], election=election)


def _reassign(
    state: ControlState,
    partition: PartitionRegistration,
    target: list[BrokerId],
    may_change_factor: bool,
    change: PartitionChange,
) -> PartitionChange:
    check_replicas(state, target, None)
    if not may_change_factor:
        present = set(partition.replicas) | set(partition.adding_replicas)
        factor = len(present - set(partition.removing_replicas))
        if len(target) != factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"the reassignment would change the replication factor from {factor} to {len(target)}, and the "
                "request forbids that",
            )
    removing = sorted(set(partition.replicas) - set(target))
    adding = sorted(set(target) - set(partition.replicas))
    replicas = [*target, *removing]
    return replace(
        change,
        replicas=None if replicas == list(partition.replicas) else replicas,
        removing=removing or None,
        adding=adding or None,
    )


def list_reassignments(
    state: ControlState, request: messages.ListPartitionReassignmentsRequest
) -> messages.ListPartitionReassignmentsResponse:
    if request.topics is None:
        asked: Iterable[tuple[TopicImage | None, Iterable[int]]] = [
            (topic, list(topic.partitions)) for topic in state.image.topics.values()
        ]
    else:
        asked = [(state.image.topics.get(one.name), one.partition_indexes) for one in request.topics]
    response = messages.ListPartitionReassignmentsResponse(error_message=None)
    for topic, numbers in asked:
        if topic is None:
            continue
        found = [
            messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
            for number in numbers
            if (partition := topic.partitions.get(number)) is not None and partition.is_reassigning
        ]
        if found:
            response.topics.append(
                messages.ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=topic.name, partitions=found)
            )
    return response


def plan_assign_directories(
    state: ControlState, broker_id: BrokerId, assignments: Iterable[tuple[bytes, bytes, int]]
) -> Plan[list[ErrorCode]]:
    """Plan the report of a broker about its replicas, as (directory, topic id, partition)."""
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    records: list[Message] = []
    results: list[ErrorCode] = []
    offline: list[tuple[TopicImage, int]] = []
    for directory, topic_id, number in assignments:
        topic = state.image.topics_by_id.get(topic_id)
        partition = topic.partitions.get(number) if topic else None
        if topic is None:
            results.append(ErrorCode.UNKNOWN_TOPIC_ID)
        elif partition is None:
            results.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif broker_id not in partition.replicas:
            results.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            change = replace(partition_change(state, topic, number), directories={broker_id: directory})
            record = change.build()
            if record is not None:
                records.append(record)
            if not broker.is_online(directory):
                offline.append((topic, number))
            results.append(ErrorCode.NONE)
    records += leader_and_isr_changes(state, offline, removed=broker_id)
    return Plan(records, results)
