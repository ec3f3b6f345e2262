"""Reads an offset range with Fetch requests to any Kafka cluster, and decodes the batches with the kernel.

No object is created per record. A range may need several Fetch responses: fetching continues until an offset at or
after the end of the range was seen, or the broker has no further records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tailrace.client.batches import FetchedPartition, FetchOptions, fetch
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError, OffsetOutOfRange, UnknownTopic
from tailrace.client.offsets import earliest_offsets, find_offsets, latest_offsets
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.records import header_kernels
from tailrace.records.batch import CONTROL_BIT, CorruptBatch, RecordBatch
from tailrace.records.control_records import end_marker
from tailrace.records.raw_batches import BatchCollector
from tailrace.spark.source.errors import DamagedLog, OffsetRangeLost, UnknownLog, Unreadable
from tailrace.spark.source.options import ReadOptions, Selection, WireOptions
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.planning.planning import split_by_count
from tailrace.spark.source.transports.topic_identity import TopicIdentity
from tailrace.spark.worker_process import reused_cluster

_LAST_OFFSET = 2**63 - 1


class WireTransport:
    def __init__(self, options: WireOptions, *, read_committed: bool) -> None:
        self._options = options
        self._isolation = _isolation(read_committed)
        self._cluster: ClusterClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}  # a connection cannot be pickled

    @property
    def cluster(self) -> ClusterClient:
        if self._cluster is None:
            self._cluster = ClusterClient(self._options.bootstrap, self._options.settings)
        return self._cluster

    def partitions(self, selection: Selection, *, missing_ok: bool = False) -> list[TopicPartition]:
        with as_source_errors(self._options.bootstrap):
            if selection.pattern is not None:
                topics = [
                    topic
                    for topic in self.cluster.topics()
                    if selection.matches(topic.name, is_internal=topic.is_internal)
                ]
            else:
                topics = []
                for name in selection.names:
                    try:
                        topics.append(self.cluster.topic(name, fresh=True))
                    except UnknownTopic:
                        if not missing_ok:
                            raise UnknownLog(f"there is no topic {name!r} at {self._options.bootstrap}") from None
        found = sorted(partition for topic in topics for partition in topic.topic_partitions)
        if not selection.partitions:
            return found
        missing = sorted(set(selection.partitions) - set(found))
        if missing and not missing_ok:
            raise UnknownLog(f"option assign names {missing[0]}, which does not exist at {self._options.bootstrap}")
        return sorted(set(selection.partitions) & set(found))

    def identities(self, selection: Selection, *, missing_ok: bool = False) -> dict[str, TopicIdentity]:
        names = {partition.topic for partition in self.partitions(selection, missing_ok=missing_ok)}
        with as_source_errors(self._options.bootstrap):
            cluster_id = self.cluster.metadata.cluster_id or ""
            topics = [self.cluster.topic(name) for name in sorted(names)]
        return {
            topic.name: TopicIdentity(str(TopicId(UUID(bytes=topic.topic_id))) if topic.has_id else "", cluster_id)
            for topic in topics
        }

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        with as_source_errors(self._options.bootstrap):
            return earliest_offsets(self.cluster, partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        with as_source_errors(self._options.bootstrap):
            return latest_offsets(self.cluster, partitions, self._isolation)

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset | None]:
        with as_source_errors(self._options.bootstrap):
            found = find_offsets(self.cluster, times)
        return {partition: None if one is None else one.offset for partition, one in found.items()}

    def slices(self, ranges: Sequence[OffsetRange], options: ReadOptions) -> list[FetchSlice]:
        parts = split_by_count(ranges, min_slices=options.min_partitions, max_offsets=options.max_records_per_partition)
        return [FetchSlice(part, self._options, options.read_committed) for part in parts]

    @property
    def bootstrap(self) -> str:
        return self._options.bootstrap

    def slice_of(self, wanted: OffsetRange) -> FetchSlice:
        return FetchSlice(wanted, self._options, self._isolation is IsolationLevel.READ_COMMITTED)

    def refresh(self) -> None:
        """Do nothing: offsets and topics are queried with every call."""

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


@dataclass(frozen=True, slots=True)
class FetchSlice:
    range: OffsetRange
    wire: WireOptions
    read_committed: bool

    def feed(self, columns: BatchCollector, *, fail_on_data_loss: bool) -> Iterator[None]:
        partition, position, end = self.range
        options = FetchOptions(
            isolation=_isolation(self.read_committed),
            max_wait_ms=self.wire.fetch_max_wait_ms,
            min_bytes=self.wire.fetch_min_bytes,
            max_bytes=self.wire.fetch_max_bytes,
            partition_max_bytes=self.wire.max_partition_fetch_bytes,
        )
        with reused_cluster(self.wire.bootstrap, self.wire.settings) as coordinators:
            cluster = coordinators.cluster
            budget = cluster.retry_budget()
            while position < end and not columns.is_done:
                try:
                    fetched = fetch(cluster, {partition: position}, options)[partition]
                except OffsetOutOfRange:
                    position = self._offset_after_loss(cluster, position, fail_on_data_loss)
                    columns.skip_to(position)
                    continue
                except UnknownTopic:
                    if fail_on_data_loss:
                        raise OffsetRangeLost(partition, position, end, "the topic was deleted") from None
                    return
                except ClientError as error:
                    text = f"{partition} cannot be read from offset {position} on: {error}"
                    raise Unreadable(text, is_transient=error.is_retriable) from None
                yield from self._put_batches(fetched, columns)
                before, position = position, max(position, columns.next_offset)
                readable_end = fetched.readable_end(options.isolation)
                if position > before:
                    budget = cluster.retry_budget()
                elif len(fetched.records):
                    raise Unreadable(
                        f"{partition} cannot be read from offset {position} on: the broker sent an incomplete batch"
                    )
                elif before < readable_end and not fetched.was_throttled:
                    return  # a broker returns at least one batch if there is one; compaction has removed the rest
                elif not budget.pause():
                    if fail_on_data_loss:
                        raise OffsetRangeLost(partition, position, end, f"the log can be read up to {readable_end}")
                    return

    def _offset_after_loss(self, cluster: ClusterClient, position: Offset, fail_on_data_loss: bool) -> Offset:
        """Return the offset to continue at if the broker does not have `position`, or raise OffsetRangeLost."""
        partition, _, end = self.range
        with as_source_errors(self.wire.bootstrap):
            log_start = earliest_offsets(cluster, [partition])[partition]
        if log_start > position:
            if fail_on_data_loss:
                raise OffsetRangeLost(partition, position, min(end, log_start), f"the log starts at {log_start}")
            return log_start
        if fail_on_data_loss:
            raise OffsetRangeLost(partition, position, end, "the log ends before these offsets")
        return end

    def _put_batches(self, fetched: FetchedPartition, columns: BatchCollector) -> Iterator[None]:
        columns.leave_out(_aborted_ranges(fetched))
        place, size = 0, len(fetched.records)
        try:
            while True:
                place = columns.put_batches(fetched.records, place, size)
                if not columns.is_full:
                    return
                yield
        except CorruptBatch as error:
            where = f"byte {error.position} of a Fetch response from {self.wire.bootstrap}"
            raise DamagedLog(self.range.partition, columns.next_offset, where, error.reason) from None


def _aborted_ranges(fetched: FetchedPartition) -> dict[int, list[tuple[Offset, Offset]]]:
    """Return the aborted ranges of a response. A range ends at the abort marker; without one it has no end."""
    if not fetched.aborted:
        return {}
    markers: dict[int, list[Offset]] = {}
    for header in header_kernels.scan_batches(fetched.records, 0, len(fetched.records))[0]:
        position, size, base_offset, magic, attributes, producer_id = (header[n] for n in (0, 1, 2, 5, 7, 10))
        if magic == 2 and attributes & CONTROL_BIT:
            marker = end_marker(RecordBatch(fetched.records[position : position + size]))
            if marker is not None and not marker.is_commit:
                markers.setdefault(producer_id, []).append(base_offset)
    ranges: dict[int, list[tuple[Offset, Offset]]] = {}
    for producer_id, first in fetched.aborted:
        last = next((offset for offset in markers.get(producer_id, ()) if offset >= first), _LAST_OFFSET)
        ranges.setdefault(producer_id, []).append((first, last))
    return ranges


def _isolation(read_committed: bool) -> IsolationLevel:
    return IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED


@contextmanager
def as_source_errors(bootstrap: str) -> Iterator[None]:
    """Raise client errors as errors of the source."""
    try:
        yield
    except UnknownTopic as error:
        raise UnknownLog(f"there is no topic {error.topic!r} at {bootstrap}") from None
    except ClientError as error:
        text = f"the cluster at {bootstrap} cannot be queried: {error}"
        raise Unreadable(text, is_transient=error.is_retriable) from None
