"""Fetch as flat tuples: `FetchAsk` for a request of any version, `FetchAnswer` for a response.

read_flat_fetch           reads versions 12 to 18 in one pass (read_kernels.py)
ask_of(message, version)  convert a request that was read as a message
parts_of(answer, …)       encode a response of any version as parts to send
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.protocol.codegen.field_versions import FETCH_REPLICA_STATE, FETCH_TOPIC_IDS
from tailrace.protocol.flat.write_kernels import write_fetched
from tailrace.protocol.headers import write_response
from tailrace.protocol.messages import FetchRequest, FetchResponse

FLAT_VERSIONS: Final = range(12, 19)
_FETCH: Final = 1

# index, current leader epoch, fetch offset, last fetched epoch, the fetcher's log start, partition_max_bytes
PartitionAsk: TypeAlias = tuple[int, int, int, int, int, int]


class FetchAsk(NamedTuple):
    """A Fetch request. Topics are named by id from version 13 on and by name before. `read_flat_fetch` returns these
    fields in this order."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: Sequence[tuple[bytes | str, Sequence[PartitionAsk]]]
    forgotten: Sequence[tuple[bytes | str, Sequence[int]]]
    rack: str
    partition_count: int  # with forgotten ones; a topic without partitions counts as one


class PartitionAnswer(NamedTuple):
    """The response for one partition. `write_fetched` relies on the order of the fields."""

    number: int  # the partition's index
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None  # producer id and first offset; None: not read_committed
    preferred_replica: int = -1
    records: Any = b""  # bytes, or a slice of a file
    diverging: tuple[int, int] | None = None  # epoch and end offset
    leader: tuple[int, int] | None = None  # id and epoch of the leader, if it is another broker


AnsweredTopic: TypeAlias = tuple[str, bytes, list[PartitionAnswer]]  # name and id


class LeaderEndpoint(NamedTuple):
    """The address of a leader on another broker."""

    id: int
    host: str
    port: int
    rack: str | None


class FetchAnswer(NamedTuple):
    """A Fetch response."""

    error_code: int
    session_id: int
    topics: list[AnsweredTopic]
    nodes: Iterable[LeaderEndpoint] = ()


def ask_of(body: FetchRequest, version: int) -> FetchAsk:
    """Convert a message."""
    by_id = version >= FETCH_TOPIC_IDS
    topics: list[tuple[bytes | str, list[PartitionAsk]]] = [
        (
            topic.topic_id if by_id else topic.topic,
            [
                (
                    one.partition,
                    one.current_leader_epoch,
                    one.fetch_offset,
                    one.last_fetched_epoch,
                    one.log_start_offset,
                    one.partition_max_bytes,
                )
                for one in topic.partitions
            ],
        )
        for topic in body.topics
    ]
    forgotten = [(topic.topic_id if by_id else topic.topic, topic.partitions) for topic in body.forgotten_topics_data]
    return FetchAsk(
        body.replica_id if version < FETCH_REPLICA_STATE else body.replica_state.replica_id,
        body.replica_state.replica_epoch,
        body.max_wait_ms,
        body.min_bytes,
        body.max_bytes,
        body.isolation_level,
        body.session_id,
        body.session_epoch,
        topics,
        forgotten,
        body.rack_id,
        sum(len(partitions) or 1 for _, partitions in topics) + sum(len(indexes) or 1 for _, indexes in forgotten),
    )


def parts_of(answer: FetchAnswer, version: int, correlation_id: int, throttle_ms: int) -> list[Any]:
    """Return the parts of a response with its header: bytes, and slices of files."""
    if version in FLAT_VERSIONS and not answer.nodes:
        parts = write_fetched(version, correlation_id, throttle_ms, answer.error_code, answer.session_id, answer.topics)
        if parts is not None:
            return parts
    return write_response(_FETCH, version, correlation_id, message_of(answer, throttle_ms))


def message_of(answer: FetchAnswer, throttle_ms: int = 0) -> FetchResponse:
    """Convert a response to a message."""
    return FetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=answer.error_code,
        session_id=answer.session_id,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=name, topic_id=topic_id, partitions=[_partition_message(one) for one in partitions]
            )
            for name, topic_id, partitions in answer.topics
        ],
        node_endpoints=[
            FetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in answer.nodes
        ],
    )


def _partition_message(one: PartitionAnswer) -> FetchResponse.PartitionData:
    made = FetchResponse.PartitionData(
        partition_index=one.number,
        error_code=one.error_code,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        log_start_offset=one.log_start_offset,
        preferred_read_replica=one.preferred_replica,
        aborted_transactions=None,
        records=one.records,
    )
    if one.aborted is not None:
        made.aborted_transactions = [
            FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in one.aborted
        ]
    if one.diverging is not None:
        made.diverging_epoch = FetchResponse.EpochEndOffset(epoch=one.diverging[0], end_offset=one.diverging[1])
    if one.leader is not None:
        made.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=one.leader[0], leader_epoch=one.leader[1])
    return made
