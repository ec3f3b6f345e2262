"""Produce as flat tuples: `ProduceAsk` for a request of any version, `ProducedPartition` for each part of a response.

read_flat_produce           reads versions 9 to 13 in one pass (read_kernels.py)
ask_of(message, version)    convert a request that was read as a message
parts_of(topics, …)         encode a response of any version as parts to send
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.protocol.codegen.field_versions import PRODUCE_TOPIC_IDS
from tailrace.protocol.flat.read_kernels import is_plain
from tailrace.protocol.flat.write_kernels import write_produced
from tailrace.protocol.headers import write_response
from tailrace.protocol.messages import ProduceRequest, ProduceResponse

FLAT_VERSIONS: Final = range(9, 14)
_PRODUCE: Final = 0

AskedTopic: TypeAlias = tuple[bytes | str, Sequence[tuple[int, Any]]]  # name or id; index and records of partitions


class ProduceAsk(NamedTuple):
    """A Produce request. Topics are named by id from version 13 on and by name before. `read_flat_produce` returns
    these fields in this order."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: Sequence[AskedTopic]
    partition_count: int  # a topic without partitions counts as one
    plain_bytes: int  # of all records if `is_plain` is true for each, else -1

    def copied(self) -> ProduceAsk:
        """Copy the records, so that a waiting request does not hold a receive buffer with many requests."""
        topics = [
            (topic, [(index, None if records is None else memoryview(bytearray(records))) for index, records in parts])
            for topic, parts in self.topics
        ]
        return self._replace(topics=topics)


class ProducedPartition:
    """The response for one partition. `write_produced` reads these attributes."""

    __slots__ = ("append_time_ms", "error", "first_offset", "index", "log_start", "message", "record_errors")

    def __init__(self, index: int) -> None:
        self.index = index
        self.error = 0
        self.first_offset = -1
        self.append_time_ms = -1
        self.log_start = -1
        self.message: str | None = None
        self.record_errors: Sequence[tuple[int, str | None]] = ()  # index and message of each invalid record


class LeaderHint(NamedTuple):
    """A leader on another broker: its id and epoch, and its address if it is known."""

    leader_id: int
    leader_epoch: int
    endpoint: tuple[str, int, str | None] | None  # host, port, rack


ProducedTopic: TypeAlias = tuple[bytes | str, list[Any]]  # name or id; ProducedPartitions


def ask_of(body: ProduceRequest, version: int) -> ProduceAsk:
    """Convert a message."""
    by_id = version >= PRODUCE_TOPIC_IDS
    topics = [
        (topic.topic_id if by_id else topic.name, [(one.index, one.records) for one in topic.partition_data])
        for topic in body.topic_data
    ]
    count = size = 0
    for _, parts in topics:
        count += len(parts) or 1
        for _, records in parts:
            if size < 0 or records is None or not is_plain(records, 0, len(records)):
                size = -1
            else:
                size += len(records)
    return ProduceAsk(body.transactional_id, body.acks, body.timeout_ms, topics, count, size)


def parts_of(
    topics: list[ProducedTopic],
    version: int,
    correlation_id: int,
    throttle_ms: int,
    leaders: dict[Any, LeaderHint] | None = None,
) -> list[Any]:
    """Return the parts of a response with its header. `leaders` has hints for partitions whose leader is another
    broker."""
    if version in FLAT_VERSIONS and not leaders:
        written = write_produced(version, correlation_id, throttle_ms, topics)
        if written is not None:
            return [written]
    response = message_of(topics, throttle_ms, leaders or {})
    return write_response(_PRODUCE, version, correlation_id, response)


def message_of(topics: Iterable[ProducedTopic], throttle_ms: int, leaders: dict[Any, LeaderHint]) -> ProduceResponse:
    """Convert a response to a message."""
    response = ProduceResponse(throttle_time_ms=throttle_ms)
    for topic, partitions in topics:
        made = ProduceResponse.TopicProduceResponse(partition_responses=[_message(one, leaders) for one in partitions])
        if isinstance(topic, bytes):
            made.topic_id = topic
        else:
            made.name = topic
        response.responses.append(made)
    endpoints = {hint.leader_id: hint.endpoint for hint in leaders.values() if hint.endpoint is not None}
    response.node_endpoints = [
        ProduceResponse.NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, (host, port, rack) in endpoints.items()
    ]
    return response


def _message(one: Any, leaders: dict[Any, LeaderHint]) -> ProduceResponse.PartitionProduceResponse:
    made = ProduceResponse.PartitionProduceResponse(
        index=one.index,
        error_code=one.error,
        base_offset=one.first_offset,
        log_append_time_ms=one.append_time_ms,
        log_start_offset=one.log_start,
        error_message=one.message,
        record_errors=[
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in one.record_errors
        ],
    )
    hint = leaders.get(one)
    if hint is not None:
        made.current_leader = ProduceResponse.LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    return made
