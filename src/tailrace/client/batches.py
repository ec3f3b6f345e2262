"""Whole record batches out of a cluster: no object per record, ever.

`fetch` is one round: one Fetch request to each leader concerned. `fetch_range` walks one partition from one offset to
another. Both give batches as views of the answers they came in; a batch may begin before the offset that was asked for,
and a reader passes over those records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster import ClusterClient, LeaderOf, PartitionAnswer
from tailrace.client.errors import ClientError, EndNotReached, InvalidAnswer, OffsetOutOfRange, Refused
from tailrace.client.isolation import Batch, IsolationLevel, may_start_before, next_offset, visible_batches
from tailrace.client.network.patience import Patience
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
    partition_max_bytes: int = 1_048_576  # exceeded by a batch that is larger
    check_crcs: bool = True


class FetchedPartition(NamedTuple):
    """What one Fetch gave of one partition."""

    partition: TopicPartition
    records: memoryview  # batches end to end; the last may be cut short
    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset
    aborted: tuple[tuple[ProducerId, Offset], ...]  # (producer id, first offset)
    was_throttled: bool = False

    def readable_end(self, isolation: IsolationLevel) -> Offset:
        """Where a reader has to stop for now."""
        return self.last_stable_offset if isolation is IsolationLevel.READ_COMMITTED else self.high_watermark

    def next_position(self, position: Offset) -> Offset:
        """Where to fetch next, after having fetched from position: what was dropped counts as read."""
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
        """Every whole batch, as it lies in the log; InvalidAnswer for one that is damaged."""
        try:
            for batch in split_any(self.records):
                if check_crcs:
                    batch.check()
                yield batch
        except CorruptBatch as error:
            raise InvalidAnswer(f"the broker sent a damaged batch of {self.partition}: {error}") from error

    def batches(self, *, check_crcs: bool = True) -> Iterator[Batch]:
        """The batches that a consumer may see, by the isolation that was fetched with."""
        return visible_batches(self.all_batches(check_crcs=check_crcs), self.aborted)


def fetch(
    cluster: ClusterClient,
    positions: Mapping[TopicPartition, Offset],
    options: FetchOptions | None = None,
    patience: Patience | None = None,
) -> dict[TopicPartition, FetchedPartition]:
    """Fetch each partition from its position: what there is, or after max_wait_ms perhaps nothing."""
    options = options or FetchOptions()

    def build(leaders: list[LeaderOf]) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            isolation_level=options.isolation,
            session_epoch=-1,  # no session
            topics=_request_topics(leaders, positions, options.partition_max_bytes),
        )

    def read(answer: FetchResponse, leaders: list[LeaderOf]) -> Iterator[PartitionAnswer]:
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
        at_least=_ISOLATION_FROM,
        at_most_without_ids=FETCH_TOPIC_IDS - 1,
        wait_ms=options.max_wait_ms,
        patience=patience,
    )


def _request_topics(
    leaders: Iterable[LeaderOf], positions: Mapping[TopicPartition, Offset], partition_max_bytes: int
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
    """The batches that hold what a consumer may see of the offsets from start up to (not with) end.

    The first and the last batch may reach beyond. Where the log has nothing at the end of the range, because compaction
    took it, the range ends there; where it does not reach the end in time, EndNotReached is raised.
    """
    options = options or FetchOptions()
    position = start
    patience = cluster.patience()
    while position < end:
        fetched = fetch(cluster, {partition: position}, options)[partition]
        for batch in fetched.batches(check_crcs=options.check_crcs):
            if not may_start_before(batch, end):
                return
            yield batch
        before, position = position, fetched.next_position(position)
        readable_end = fetched.readable_end(options.isolation)
        if position > before:
            patience = cluster.patience()
        elif position < readable_end and not fetched.was_throttled:
            return  # a broker gives at least one batch if there is any
        elif not patience.pause():
            raise EndNotReached(f"{partition} can be read up to offset {readable_end}, and {end} was asked for")
