"""Fetches whole record batches from a cluster, without an object per record.

`fetch` sends one Fetch request to each leader of the given partitions. `fetch_range` reads one partition from one
offset to another. Both return batches as views of the response buffers. A batch may start before the requested offset;
the reader has to skip the earlier records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.errors import ClientError, EndNotReached, InvalidAnswer, OffsetOutOfRange, Refused
from tailrace.client.network.retry_budget import RetryBudget
from tailrace.client.visible_batches import Batch, IsolationLevel, may_start_before, next_offset, visible_batches
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, ProducerId, TopicPartition
from tailrace.protocol.codegen.field_versions import FETCH_TOPIC_IDS, first_version_with
from tailrace.protocol.messages import FetchRequest, FetchResponse
from tailrace.records.batch import CorruptBatch
from tailrace.records.conversion import split_any

_ISOLATION_FROM: Final = first_version_with("FetchRequest", "isolation_level")
_PREFIX: Final = Struct(">qi")  # base offset and length, the same in every format


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    partition_max_bytes: int = 1_048_576  # a single larger batch is still returned
    check_crcs: bool = True


class FetchedPartition(NamedTuple):
    """The response to one Fetch for one partition."""

    partition: TopicPartition
    records: memoryview  # consecutive batches; the last one may be incomplete
    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset
    aborted: tuple[tuple[ProducerId, Offset], ...]  # (producer id, first offset)
    was_throttled: bool = False

    def readable_end(self, isolation: IsolationLevel) -> Offset:
        """Return the offset up to which a reader can currently read."""
        return self.last_stable_offset if isolation is IsolationLevel.READ_COMMITTED else self.high_watermark

    def next_position(self, position: Offset) -> Offset:
        """Return the next offset to fetch. Batches that the isolation level hides count as read."""
        start, end = 0, len(self.records)
        last: int | None = None
        while end - start >= _PREFIX.size:
            size = _PREFIX.unpack_from(self.records, start)[1] + _PREFIX.size
            if size <= _PREFIX.size or size > end - start:
                break
            last, start = start, start + size
        if last is None:
            return position
        return max(position, *(next_offset(batch) for batch in split_any(self.records[last:start])))

    def all_batches(self, *, check_crcs: bool = True) -> Iterator[Batch]:
        """Yield every complete batch, as stored in the log. Raise InvalidAnswer for a damaged one."""
        try:
            for batch in split_any(self.records):
                if check_crcs:
                    batch.check()
                yield batch
        except CorruptBatch as error:
            raise InvalidAnswer(f"the broker sent a damaged batch of {self.partition}: {error}") from error

    def batches(self, *, check_crcs: bool = True) -> Iterator[Batch]:
        """Yield the batches that a consumer with the isolation level of the fetch may see."""
        return visible_batches(self.all_batches(check_crcs=check_crcs), self.aborted)


def fetch(
    cluster: ClusterClient,
    positions: Mapping[TopicPartition, Offset],
    options: FetchOptions | None = None,
    budget: RetryBudget | None = None,
) -> dict[TopicPartition, FetchedPartition]:
    """Fetch each partition from its position. If there are no records after max_wait_ms, the result is empty."""
    options = options or FetchOptions()

    def build(leaders: list[LedPartition]) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            isolation_level=options.isolation,
            session_epoch=-1,  # no session
            topics=_request_topics(leaders, positions, options.partition_max_bytes),
        )

    def read(answer: FetchResponse, leaders: list[LedPartition]) -> Iterator[PartitionAnswer]:
        if answer.error_code:
            raise Refused("Fetch", answer.error_code)
        names = {leader.topic_id: leader.partition.topic for leader in leaders}
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                yield _read_partition(partition, data, positions, answer.throttle_time_ms > 0)

    return cluster.ask_leaders(
        positions,
        build,
        read,
        version_min=_ISOLATION_FROM,
        version_max_without_ids=FETCH_TOPIC_IDS - 1,
        wait_ms=options.max_wait_ms,
        budget=budget,
    )


def _request_topics(
    leaders: Iterable[LedPartition], positions: Mapping[TopicPartition, Offset], partition_max_bytes: int
) -> list[FetchRequest.FetchTopic]:
    topics: dict[str, FetchRequest.FetchTopic] = {}
    for partition, topic_id, leader_epoch in leaders:
        topic = topics.setdefault(partition.topic, FetchRequest.FetchTopic(topic=partition.topic, topic_id=topic_id))
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=partition.partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=positions[partition],
                partition_max_bytes=partition_max_bytes,
            )
        )
    return list(topics.values())


def _read_partition(
    partition: TopicPartition,
    data: FetchResponse.PartitionData,
    positions: Mapping[TopicPartition, Offset],
    was_throttled: bool,
) -> PartitionAnswer:
    error: ClientError
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        error = OffsetOutOfRange(str(partition), positions.get(partition, -1), data.log_start_offset)
        return PartitionAnswer(partition, None, error)
    if data.error_code:
        return PartitionAnswer(partition, None, Refused(str(partition), data.error_code))
    fetched = FetchedPartition(
        partition,
        memoryview(b"" if data.records is None else data.records),
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        tuple((one.producer_id, one.first_offset) for one in data.aborted_transactions or ()),
        was_throttled,
    )
    return PartitionAnswer(partition, fetched)


def fetch_range(
    cluster: ClusterClient,
    partition: TopicPartition,
    start: Offset,
    end: Offset,
    options: FetchOptions | None = None,
) -> Iterator[Batch]:
    """Yield the batches with the offsets from `start` up to, but not including, `end`, as a consumer sees them.

    The first and the last batch may extend beyond the range. If compaction has removed the records at the end of the
    range, the iteration ends before it. If the log does not reach `end` in time, EndNotReached is raised.
    """
    options = options or FetchOptions()
    position = start
    budget = cluster.retry_budget()
    while position < end:
        fetched = fetch(cluster, {partition: position}, options)[partition]
        for batch in fetched.batches(check_crcs=options.check_crcs):
            if not may_start_before(batch, end):
                return
            yield batch
        before, position = position, fetched.next_position(position)
        readable_end = fetched.readable_end(options.isolation)
        if position > before:
            budget = cluster.retry_budget()
        elif position < readable_end and not fetched.was_throttled:
            return  # a broker returns at least one batch if there is one
        elif not budget.pause():
            raise EndNotReached(f"{partition} can be read up to offset {readable_end} only; the range ends at {end}")
