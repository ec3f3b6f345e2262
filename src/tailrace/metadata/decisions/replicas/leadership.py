"""Decides leaders and ISRs when brokers start and stop, and plans ElectLeaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from tailrace.metadata.controller.control_state import NO_ERROR, ApiError, ControlState, Plan
from tailrace.metadata.decisions.replicas.partition_change import Election, PartitionChange
from tailrace.metadata.image.image import TopicImage
from tailrace.metadata.image.partition_registration import NO_LEADER
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


def partition_change(
    state: ControlState,
    topic: TopicImage,
    number: int,
    *,
    removed: BrokerId | None = None,
    added: BrokerId | None = None,
    min_isr: int | None = None,
) -> PartitionChange:
    """Return a PartitionChange of a partition, with the state of the cluster and without any change set.

    `removed` counts as offline, `added` as online.
    """
    image = state.image
    partition = topic.partitions[number]

    def is_acceptable(replica: BrokerId) -> bool:
        broker = image.brokers.get(replica)
        if broker is None or replica == removed or replica not in partition.replicas:
            return False
        return (replica == added or broker.is_active) and broker.is_online(partition.directory_of(replica))

    return PartitionChange(
        partition=partition,
        topic_id=topic.id,
        number=number,
        is_acceptable=is_acceptable,
        default_directory=image.default_directory,
        versions=image.record_versions,
        min_isr=state.configs.min_insync_replicas(image, topic.name) if min_isr is None else min_isr,
        elr_enabled=image.elr_enabled,
    )


def partitions_in_sync_at(state: ControlState, broker_id: BrokerId, *, elr: bool) -> Iterator[tuple[TopicImage, int]]:
    """Yield the partitions with this broker in their ISR, or with `elr` in their ELR."""
    for topic, number, partition in state.image.partitions():
        if broker_id in (partition.elr if elr else partition.isr):
            yield topic, number


def partitions_without_leader(state: ControlState) -> Iterator[tuple[TopicImage, int]]:
    for topic, number, partition in state.image.partitions():
        if partition.leader == NO_LEADER:
            yield topic, number


def leader_and_isr_changes(
    state: ControlState,
    partitions: Iterable[tuple[TopicImage, int]],
    *,
    removed: BrokerId | None = None,
    added: BrokerId | None = None,
    stopped_uncleanly: BrokerId | None = None,
) -> list[Message]:
    """Return the records for partitions of a broker that leaves, starts, or starts after an unclean stop."""
    gone = removed if stopped_uncleanly is None else stopped_uncleanly
    records: list[Message] = []
    settings: dict[str, tuple[int, bool]] = {}  # of each topic, looked up once
    for topic, number in partitions:
        if topic.name not in settings:
            settings[topic.name] = (
                state.configs.min_insync_replicas(state.image, topic.name),
                state.configs.allows_unclean_election(state.image, topic.name),
            )
        min_isr, unclean = settings[topic.name]
        change = replace(
            partition_change(state, topic, number, removed=gone, added=added, min_isr=min_isr),
            isr=[one for one in topic.partitions[number].isr if one != gone],
            stopped_uncleanly=() if stopped_uncleanly is None else (stopped_uncleanly,),
            election=Election.UNCLEAN if unclean else Election.ONLINE,
        )
        record = change.build()
        if record is not None:
            records.append(record)
    return records


def replace_unusable_replicas(state: ControlState, name: str, number: int) -> list[Message]:
    """Return the record that removes unusable replicas from the ISR, and replaces the leader if it is unusable."""
    image = state.image
    topic = image.topics.get(name)
    partition = topic.partitions.get(number) if topic is not None else None
    if topic is None or partition is None:
        return []

    def is_usable(replica: BrokerId) -> bool:
        broker = image.brokers.get(replica)
        return broker is not None and broker.is_active and broker.is_online(partition.directory_of(replica))

    isr = [one for one in partition.isr if is_usable(one)]
    if len(isr) == len(partition.isr) and partition.leader in isr:
        return []
    unclean = state.configs.allows_unclean_election(image, name)
    change = replace(
        partition_change(state, topic, number), isr=isr, election=Election.UNCLEAN if unclean else Election.ONLINE
    )
    record = change.build()
    return [] if record is None else [record]


# ElectLeaders


def plan_elect_leaders(
    state: ControlState, request: messages.ElectLeadersRequest
) -> Plan[messages.ElectLeadersResponse]:
    response = messages.ElectLeadersResponse()
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        response.error_code = ErrorCode.INVALID_REQUEST
        error = ApiError(
            ErrorCode.INVALID_REQUEST,
            f"unknown election type {request.election_type}: use 0 (preferred) or 1 (unclean)",
        )
        for one in request.topic_partitions or ():
            results = messages.ElectLeadersResponse.ReplicaElectionResult(topic=one.topic)
            results.partition_result = [_election_result(number, error) for number in one.partitions]
            response.replica_election_results.append(results)
        return Plan([], response)
    everything = request.topic_partitions is None
    if request.topic_partitions is None:
        asked = [(topic.name, list(topic.partitions)) for topic in state.image.topics.values()]
    else:
        asked = [(one.topic, list(one.partitions)) for one in request.topic_partitions]
    records: list[Message] = []
    for name, numbers in asked:
        results = messages.ElectLeadersResponse.ReplicaElectionResult(topic=name)
        response.replica_election_results.append(results)
        for number in numbers:
            error = _elect(state, name, number, request.election_type, records)
            if not everything or error.code != ErrorCode.ELECTION_NOT_NEEDED:
                results.partition_result.append(_election_result(number, error))
    return Plan(records, response)


def _election_result(number: int, error: ApiError) -> messages.ElectLeadersResponse.PartitionResult:
    return messages.ElectLeadersResponse.PartitionResult(
        partition_id=number, error_code=error.code, error_message=error.message
    )


def _elect(state: ControlState, name: str, number: int, election_type: int, records: list[Message]) -> ApiError:
    topic = state.image.topics.get(name)
    partition = topic.partitions.get(number) if topic else None
    if topic is None or partition is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {name}-{number} does not exist")
    preferred = election_type == _PREFERRED
    if partition.leader == (partition.preferred_leader if preferred else partition.leader) != NO_LEADER:
        return ApiError(ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{number} already has the leader that would be elected")
    election = Election.PREFERRED if preferred else Election.UNCLEAN
    record = replace(partition_change(state, topic, number), election=election).build()
    if record is not None:
        records.append(record)
        return NO_ERROR
    if preferred:
        return ApiError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader of {name}-{number} is offline or not in the ISR",
        )
    return ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica of {name}-{number} that may lead is online")
