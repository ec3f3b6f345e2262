"""Replicas one by one: how far each has got, and which are on their way to other brokers.

A broker tells a consumer where the leader's log ends for consumers. Asked with the replica id of a debugging consumer,
-2, it tells where its own log ends, as leader and as follower alike: so how far a follower lags can be asked of any
cluster, with the right to describe the topic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.errors import ClientError, Refused
from tailrace.client.offsets import OffsetSpec
from tailrace.model.ids import BrokerId, Offset, TopicPartition
from tailrace.protocol.message import Message
from tailrace.protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_DEBUGGER: Final = -2
_FIRST_WITH_ONE_OFFSET: Final = 1


class Reassignment(NamedTuple):
    """A partition's replicas while it moves; those that are added and removed are among them."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


def ask_brokers(cluster: ClusterClient, requests: Mapping[BrokerId, Message], *, at_least: int = 0) -> dict[int, Any]:
    """Ask brokers each its own question, all before the first answer is waited for, and once.

    What a broker cannot be asked is its value, as an error: whoever looks at a cluster wants to know.
    """
    answers: dict[BrokerId, Any] = {}
    sent = []
    for node_id, request in requests.items():
        try:
            connection = cluster.connection_to(node_id)
            sent.append((node_id, connection, connection.send(request, at_least=at_least)))
        except ClientError as error:
            answers[node_id] = error
    for node_id, connection, ticket in sent:
        try:
            answers[node_id] = connection.receive(ticket)
        except ClientError as error:
            answers[node_id] = error
    return answers


def end_offsets(
    cluster: ClusterClient, wanted: Mapping[BrokerId, Iterable[TopicPartition]]
) -> dict[tuple[BrokerId, TopicPartition], Offset]:
    """Where each broker's replicas of these partitions end; without those that it could not say of."""
    requests = {node_id: _request(partitions) for node_id, partitions in wanted.items() if partitions}
    found: dict[tuple[BrokerId, TopicPartition], Offset] = {}
    for node_id, answer in ask_brokers(cluster, requests, at_least=_FIRST_WITH_ONE_OFFSET).items():
        if isinstance(answer, ListOffsetsResponse):
            for topic in answer.topics:
                for one in topic.partitions:
                    if not one.error_code and one.offset >= 0:
                        found[node_id, TopicPartition(topic.name, one.partition_index)] = one.offset
    return found


def _request(partitions: Iterable[TopicPartition]) -> ListOffsetsRequest:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        by_topic[topic].append(number)
    return ListOffsetsRequest(
        replica_id=_DEBUGGER,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=OffsetSpec.LATEST)
                    for number in numbers
                ],
            )
            for name, numbers in by_topic.items()
        ],
    )


def reassignments(cluster: ClusterClient) -> dict[TopicPartition, Reassignment]:
    """The partitions whose replicas are being moved."""

    def check(answer: ListPartitionReassignmentsResponse) -> None:
        if answer.error_code:
            raise Refused("reassignments", answer.error_code, answer.error_message)

    request = ListPartitionReassignmentsRequest(topics=None, timeout_ms=cluster.settings.request_timeout_ms)
    answer: ListPartitionReassignmentsResponse = cluster.ask_any(request, check=check)
    return {
        TopicPartition(topic.name, one.partition_index): Reassignment(
            tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)
        )
        for topic in answer.topics
        for one in topic.partitions
    }
