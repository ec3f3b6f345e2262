"""Log end offsets of single replicas, and running reassignments.

ListOffsets from a consumer returns the leader's high watermark. With the replica id -2 (a debugging consumer), any
broker returns the log end offset of its own replica, also as a follower. So the lag of followers can be computed for
any cluster. It needs only the DESCRIBE permission on the topic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
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

_DEBUGGING_CONSUMER_ID: Final = -2
_FIRST_WITH_ONE_OFFSET: Final = 1


class Reassignment(NamedTuple):
    """The replicas of a partition during a reassignment. `replicas` includes `adding` and `removing`."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


def ask_brokers(
    cluster: ClusterClient, requests: Mapping[BrokerId, Message], *, version_min: int = 0
) -> dict[int, Any]:
    """Send each broker its own request, then read the responses. Nothing is retried.

    The value of a broker is its response, or the ClientError if there is none.
    """
    answers: dict[BrokerId, Any] = {}
    sent = []
    for node_id, request in requests.items():
        try:
            connection = cluster.connection_to(node_id)
            sent.append((node_id, connection, connection.send(request, version_min=version_min)))
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
    """Return the log end offset of each broker's replicas. Replicas without a valid response are omitted."""
    requests = {node_id: _request(partitions) for node_id, partitions in wanted.items() if partitions}
    found: dict[tuple[BrokerId, TopicPartition], Offset] = {}
    for node_id, answer in ask_brokers(cluster, requests, version_min=_FIRST_WITH_ONE_OFFSET).items():
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
        replica_id=_DEBUGGING_CONSUMER_ID,
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
    """Return the partitions that are being reassigned."""

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
