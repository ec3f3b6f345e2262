"""TierTransport: older records straight from the remote segments of tiered storage, the others over the network.

With a cluster, its metadata topic says which remote segments are valid, and its offsets are the bounds. A range of
offsets is split: what valid segments have is read from the store by many tasks, and the rest with Fetch requests. If
retention deletes a segment before its task runs, the task reads the rest of its range over the network.

Without a cluster, the complete segments in the store are the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.visible_batches import IsolationLevel
from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.records.columnar.columns import AbortedRanges
from tailrace.records.raw_batches import BatchCollector
from tailrace.spark.source.errors import OffsetRangeLost, UnknownLog, Unreadable
from tailrace.spark.source.options import ReadOptions, Selection
from tailrace.spark.source.planning.offset_ranges import Bounds, OffsetRange
from tailrace.spark.source.transports.files_transport import FilesTransport
from tailrace.spark.source.transports.remote_metadata import RemoteMetadata
from tailrace.spark.source.transports.segment_feed import SegmentSlice, feed_range
from tailrace.spark.source.transports.topic_identity import TopicIdentity
from tailrace.spark.source.transports.wire_transport import FetchSlice, WireTransport, as_source_errors
from tailrace.tiers.stores.view.opening import Known, TierView, open_view
from tailrace.tiers.stores.view.tier_files import TierFiles
from tailrace.tiers.stores.view.tier_listing import NotATier

_log = logging.getLogger(__name__)
_LAST_OFFSET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TierSlice:
    """A range of offsets in remote segments, and the way to read it if they are deleted meanwhile."""

    range: OffsetRange
    folder: str
    aborted: AbortedRanges
    files: TierFiles
    instead: FetchSlice | None

    def feed(self, columns: BatchCollector, *, fail_on_data_loss: bool) -> Iterator[None]:
        columns.leave_out(self.aborted)
        fails = fail_on_data_loss or self.instead is not None
        try:
            yield from feed_range(self.files, self.folder, self.range, columns, fail_on_data_loss=fails)
        except (Unreadable, OffsetRangeLost) as error:
            if self.instead is None:
                raise
            _log.warning("%s; the rest of the range is read from the cluster", error)
            rest = self.range._replace(start=max(self.range.start, columns.next_offset))
            if rest.start < rest.end:
                other = FetchSlice(rest, self.instead.wire, self.instead.read_committed)
                yield from other.feed(columns, fail_on_data_loss=fail_on_data_loss)


class TierTransport:
    def __init__(self, path: str, files: Files, wire: WireTransport | None, *, read_committed: bool) -> None:
        self._path = path
        self._files = files
        self._wire = wire
        self._read_committed = read_committed
        self._metadata = RemoteMetadata()
        self._log: FilesTransport | None = None  # the remote segments alone, if there is no cluster

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_metadata": RemoteMetadata(), "_log": None}

    @property
    def _main(self) -> WireTransport | FilesTransport:
        """The transport that knows the partitions and their bounds."""
        if self._wire is not None:
            return self._wire
        if self._log is None:
            view = self._view()
            self._log = FilesTransport(self._path, read_committed=self._read_committed, files=view.files)
        return self._log

    def _view(self, known: Mapping[TopicPartition, Known] | None = None) -> TierView:
        try:
            if known is None:
                view = open_view(self._files, self._path)
            else:
                view = open_view(self._files, self._path, is_wanted=known.__contains__, known=known.__getitem__)
        except NotATier as error:
            raise UnknownLog(str(error)) from None
        except OSError as error:
            raise Unreadable(f"{self._path} cannot be read: {error.filename}: {error.strerror}") from None
        for problem in view.problems:
            _log.warning("%s", problem)
        return view

    def refresh(self) -> None:
        self._main.refresh()
        self._log = None

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()

    # Partitions and bounds

    def partitions(self, selection: Selection, *, missing_ok: bool = False) -> list[TopicPartition]:
        return self._main.partitions(selection, missing_ok=missing_ok)

    def identities(self, selection: Selection, *, missing_ok: bool = False) -> dict[str, TopicIdentity]:
        return self._main.identities(selection, missing_ok=missing_ok)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        return self._main.earliest(partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        return self._main.latest(partitions)

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset | None]:
        return self._main.at_times(times)

    # Slices

    def slices(self, ranges: Sequence[OffsetRange], options: ReadOptions) -> Sequence[Any]:
        if self._wire is None:
            cut = self._main.slices(ranges, options)
            return [self._tier_slice(one, {}) for one in cut if isinstance(one, SegmentSlice)]
        known = self._known(ranges)
        view = self._view(known) if known else TierView(TierFiles(self._files, self._path, {}))
        cold: list[OffsetRange] = []
        warm: list[OffsetRange] = []
        for wanted in ranges:
            stored, rest = split_range(wanted, [(one.start, one.end) for one in view.links.get(wanted.partition, ())])
            cold += stored
            warm += rest
        found: list[Any] = []
        if cold:
            # The bounds are those of the cluster, so the files are not searched for open transactions.
            bounds: Bounds = self._wire
            log = FilesTransport(self._path, read_committed=self._read_committed, cluster=bounds, files=view.files)
            across = {one: self._aborted_across(one) for one in cold}
            for one in log.slices(cold, options):
                whole = next(other for other in cold if _has(other, one.range))
                found.append(self._tier_slice(one, across[whole]))
        return [*found, *self._wire.slices(warm, options)] if warm else found

    def _tier_slice(self, one: SegmentSlice, across: AbortedRanges) -> TierSlice:
        files = one.files
        assert isinstance(files, TierFiles)
        aborted = {producer: list(parts) for producer, parts in one.aborted.items()}
        for producer, parts in across.items():
            aborted.setdefault(producer, []).extend(parts)
        instead = None if self._wire is None else self._wire.slice_of(one.range)
        bases = sorted(
            parsed[0]
            for entry in files.entries(one.folder)
            if (parsed := file_names.parse_segment_file(entry.name)) and parsed[1] == file_names.LOG
        )
        first = max((base for base in bases if base <= one.range.start), default=one.range.start)

        def is_wanted(name: str) -> bool:
            parsed = file_names.parse_segment_file(name)
            return parsed is not None and first <= parsed[0] <= one.range.end

        return TierSlice(one.range, one.folder, aborted, files.only(one.folder, is_wanted), instead)

    def _known(self, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, Known]:
        """Return the valid remote segments of the partitions with any in their ranges."""
        assert self._wire is not None
        topics = {wanted.partition.topic for wanted in ranges}
        identities = self._wire.identities(Selection(topics=tuple(sorted(topics))))
        ids = {topic: TopicId.parse(one.topic_id) for topic, one in identities.items() if one.topic_id}
        with as_source_errors(self._wire.bootstrap):
            partitions = {wanted.partition for wanted in ranges if wanted.partition.topic in ids}
            self._metadata.read(self._wire.cluster, [(ids[topic], number) for topic, number in sorted(partitions)])
        known = {}
        for partition, start, end in ranges:
            segments = list(self._metadata.finished(ids[partition.topic], partition.partition))
            if any(one.start_offset < end and start <= one.end_offset for one in segments):
                by_id = {one.segment_id.text: one for one in segments}
                known[partition] = Known(ids[partition.topic], by_id, start, end)
        return known

    def _aborted_across(self, wanted: OffsetRange) -> AbortedRanges:
        """Return the aborted transactions that begin before the end of a range and end after it.

        Their markers may be in segments that are not in the store yet, so the cluster is asked.
        """
        if not self._read_committed:
            return {}
        assert self._wire is not None
        partition = wanted.partition
        options = FetchOptions(
            isolation=IsolationLevel.READ_COMMITTED, max_wait_ms=0, min_bytes=0, partition_max_bytes=1
        )
        if wanted.end >= self._wire.latest([partition])[partition]:
            return {}
        with as_source_errors(self._wire.bootstrap):
            budget = self._wire.cluster.retry_budget()
            while True:
                found = fetch(self._wire.cluster, {partition: wanted.end}, options)[partition]
                if len(found.records):
                    break
                if not budget.pause():
                    raise Unreadable(f"the cluster returns no record of {partition} at offset {wanted.end}")
        across: dict[int, list[tuple[Offset, Offset]]] = {}
        for producer, first in found.aborted:
            if first < wanted.end:
                across.setdefault(producer, []).append((first, _LAST_OFFSET))
        return across


def split_range(
    wanted: OffsetRange, stored: Sequence[tuple[Offset, Offset]]
) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Return the parts of a range that are stored, and the other parts. `stored` is in order of its starts."""
    cold: list[OffsetRange] = []
    warm: list[OffsetRange] = []
    partition, position, end = wanted
    for start, stop in stored:
        start, stop = max(start, position), min(stop, end)
        if start >= stop:
            continue
        if start > position:
            warm.append(OffsetRange(partition, position, start))
        if cold and cold[-1].end == start:
            cold[-1] = cold[-1]._replace(end=stop)
        else:
            cold.append(OffsetRange(partition, start, stop))
        position = stop
    if position < end:
        warm.append(OffsetRange(partition, position, end))
    return cold, warm


def _has(whole: OffsetRange, part: OffsetRange) -> bool:
    return whole.partition == part.partition and whole.start <= part.start and part.end <= whole.end
