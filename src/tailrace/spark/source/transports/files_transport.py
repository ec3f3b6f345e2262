"""Reads segment files in place, of Tailrace or Apache Kafka, with or without a running broker.

On the driver each partition is opened read-only (`log/inspect/offline.py`): names, indexes, the end of the last
segment. Its ranges are cut at index entries. A slice consists of offsets, not of files, because files change: a cleaner
replaces segments, and retention deletes them. The task lists the folder when it starts, and finds its offsets with the
index.

Files have more records than a consumer sees: those after the high watermark, and open transactions. If the address of
the cluster is given as well, the start and end offsets are those of the cluster. Otherwise the end is the log end
offset, or with read_committed the last stable offset of the files.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tailrace.log.directories.data_directory import PartitionFolder, read_data_directory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles, Files, RemoteFiles
from tailrace.log.inspect.findings import InspectionFailed
from tailrace.log.inspect.offline import OfflineLog, open_bounds, open_exact
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset, ProducerId, TopicPartition
from tailrace.records.batch import CorruptBatch
from tailrace.records.columnar.columns import AbortedRanges
from tailrace.spark.source.errors import UnknownLog, Unreadable
from tailrace.spark.source.options import ReadOptions, Selection
from tailrace.spark.source.planning.offset_ranges import Bounds, OffsetRange
from tailrace.spark.source.planning.planning import bytes_per_slice, cut_by_bytes, extents, split_by_count
from tailrace.spark.source.transports.indexed_segment import IndexedSegment
from tailrace.spark.source.transports.segment_feed import SegmentSlice
from tailrace.spark.source.transports.topic_identity import TopicIdentity, identity_in

_log = logging.getLogger(__name__)
_Found = TypeVar("_Found")
_ATTEMPTS = 8
_TIMES_AT_ONCE = 32
INTERNAL_TOPICS = frozenset({
    "__consumer_offsets", "__transaction_state", "__share_group_state", file_names.CLUSTER_METADATA_TOPIC
})  # fmt: skip


class FilesTransport:
    def __init__(
        self, path: str, *, read_committed: bool, cluster: Bounds | None = None, files: Files | None = None
    ) -> None:
        self._path = path
        self._read_committed = read_committed
        self._cluster = cluster
        self._files = files or DiskFiles()
        self._folders: dict[TopicPartition, PartitionFolder] | None = None
        self._logs: dict[TopicPartition, OfflineLog] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_folders": None, "_logs": {}}

    def refresh(self) -> None:
        for offline in self._logs.values():
            offline.log.abandon()
        self._logs = {}
        self._folders = None

    def close(self) -> None:
        self.refresh()
        close = getattr(self._cluster, "close", None)
        if close is not None:
            close()

    def _retry_if_deleted(self, find: Callable[[], _Found]) -> _Found:
        """Return the result of `find`. If a file was deleted in between, list the directory and call `find` again."""
        for attempt in range(_ATTEMPTS):
            try:
                return find()
            except FileNotFoundError as error:
                vanished = error
                self.refresh()
                time.sleep(0.01 * attempt)
        raise Unreadable(f"{vanished.filename} was deleted during the read; {_ATTEMPTS} attempts failed")

    # Partitions

    @property
    def folders(self) -> dict[TopicPartition, PartitionFolder]:
        if self._folders is None:
            try:
                found = read_data_directory(self._files, self._path)
            except InspectionFailed as error:
                raise Unreadable(str(error)) from None
            except OSError as error:
                raise Unreadable(f"{self._path} cannot be read: {error.strerror}") from None
            for finding in found.findings:
                _log.warning("%s", finding)
            self._folders = {folder.partition: folder for folder in found.folders if not folder.mark}
        return self._folders

    def partitions(self, selection: Selection, *, missing_ok: bool = False) -> list[TopicPartition]:
        found = [
            partition
            for partition in self.folders
            if selection.matches(partition.topic, is_internal=partition.topic in INTERNAL_TOPICS)
        ]
        if selection.partitions:
            found = [partition for partition in found if partition in selection.partitions]
        if not missing_ok:
            topics = {partition.topic for partition in found}
            for name in selection.names if not selection.partitions else ():
                if name not in topics:
                    raise UnknownLog(f"there is no topic {name!r} in {self._path}")
            for partition in selection.partitions:
                if partition not in found:
                    raise UnknownLog(f"option assign names {partition}, which does not exist in {self._path}")
        return sorted(found)

    def identities(self, selection: Selection, *, missing_ok: bool = False) -> dict[str, TopicIdentity]:
        folders = {one.topic: self.folders[one].path for one in self.partitions(selection, missing_ok=missing_ok)}
        return {topic: identity_in(self._files, self._path, folder) for topic, folder in folders.items()}

    def _opened(self, partition: TopicPartition) -> OfflineLog:
        if partition not in self._logs:
            folder = self.folders.get(partition)
            if folder is None:
                raise UnknownLog(f"there is no {partition} in {self._path}")
            # Producer states are needed only to find open transactions; loading them reads the last segment.
            opening = open_exact if self._read_committed and self._cluster is None else open_bounds
            try:
                offline = opening(self._files, folder, int(time.time() * 1000))
            except InspectionFailed as error:
                raise Unreadable(f"{partition} cannot be read: {error}") from None
            for finding in offline.findings:
                _log.warning("%s: %s", partition, finding)
            self._logs[partition] = offline
        return self._logs[partition]

    def _open_all(self, partitions: Iterable[TopicPartition]) -> None:
        if isinstance(self._files, RemoteFiles) and self.folders:
            self._files.run_together(partial(self._opened, partition) for partition in partitions)

    # Bounds

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        if self._cluster is not None:
            return self._cluster.earliest(partitions)
        partitions = list(partitions)
        self._open_all(partitions)
        return {partition: self._opened(partition).log.log_start_offset for partition in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        if self._cluster is not None:
            return self._cluster.latest(partitions)
        partitions = list(partitions)
        self._open_all(partitions)
        return {partition: self._end(self._opened(partition)) for partition in partitions}

    def sealed_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the end offsets of the sealed segments, which no broker writes to."""
        partitions = list(partitions)
        self._open_all(partitions)
        return {one: list(self._opened(one).log.segments)[-1].base_offset for one in partitions}

    def _end(self, offline: OfflineLog) -> Offset:
        log = offline.log
        return log.last_stable_offset if self._read_committed else log.log_end_offset

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset | None]:
        if self._cluster is not None:
            return self._cluster.at_times(times)
        return {
            partition: self._retry_if_deleted(partial(self._at_time, partition, moment))
            for partition, moment in times.items()
        }

    def _at_time(self, partition: TopicPartition, moment: int) -> Offset | None:
        log = self._opened(partition).log
        try:
            self._load_timestamps(list(log.segments), moment)
            record = find_offset(log, moment)
        except (CorruptBatch, CorruptIndex) as error:
            raise Unreadable(f"{partition} cannot be searched for time {moment}: {error}") from None
        return None if record is None else record.offset

    def _load_timestamps(self, segments: list[Segment], moment: int) -> None:
        """Load the largest timestamps of the segments in parallel, for the search by time."""
        if not isinstance(self._files, RemoteFiles):
            return
        for first in range(0, len(segments), _TIMES_AT_ONCE):
            some = segments[first : first + _TIMES_AT_ONCE]
            self._files.run_together(segment.retention_timestamp_ms for segment in some)
            if any(segment.retention_timestamp_ms() >= moment for segment in some):
                return

    # Slices

    def slices(self, ranges: Sequence[OffsetRange], options: ReadOptions) -> list[SegmentSlice]:
        return self._retry_if_deleted(lambda: self._cut(ranges, options))

    def _cut(self, ranges: Sequence[OffsetRange], options: ReadOptions) -> list[SegmentSlice]:
        self._open_all({wanted.partition for wanted in ranges})
        maps = {wanted.partition: self._indexed_segments(wanted.partition) for wanted in ranges}
        parts = {wanted: extents(wanted, maps[wanted.partition]) for wanted in ranges}
        total = sum(part.end - part.start for found in parts.values() for part in found)
        size = bytes_per_slice(total, options.max_bytes_per_partition, options.min_partitions)
        cut = [slice_ for wanted, found in parts.items() for slice_ in cut_by_bytes(wanted, found, size)]
        if options.max_records_per_partition:
            cut = split_by_count(cut, max_offsets=options.max_records_per_partition)
        return [
            SegmentSlice(wanted, self.folders[wanted.partition].path, self._aborted(wanted), self._files)
            for wanted in cut
        ]

    def _indexed_segments(self, partition: TopicPartition) -> list[IndexedSegment]:
        log = self._opened(partition).log
        segments = list(log.segments)
        ends = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
        return [IndexedSegment(segment, end) for segment, end in zip(segments, ends, strict=True)]

    def _aborted(self, wanted: OffsetRange) -> AbortedRanges:
        if not self._read_committed:
            return {}
        segments = self._opened(wanted.partition).log.segments
        base_offset = segments[max(segments.floor_slot(wanted.start), 0)].base_offset
        aborted: dict[ProducerId, list[tuple[Offset, Offset]]] = {}
        for one in segments.aborted_transactions(base_offset, wanted.start, wanted.end):
            aborted.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))
        return aborted
