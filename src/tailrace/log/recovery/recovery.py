"""Opens a partition's folder: completes interrupted changes, rebuilds indexes, cuts a torn tail.

After a clean stop nothing is scanned: segments are opened by name, the last one is read from its last index entry on,
and producers come from their snapshot. After an unclean stop the segments from the recovery point on are read whole,
and the log ends before the first batch with a wrong checksum. If whole batches follow a damaged batch, the cut bytes
are kept beside the log as a `.broken` file. A torn tail is not kept.

    1. Remove `.deleted` files, and `.cleaned` files with the `.swap` files that they make invalid. Finish others.
    2. Load segments. Rebuild an index file that is missing or of an impossible size.
    3. After an unclean stop, recover segment by segment from the recovery point on. After a cut remove later segments.
    4. Bring leader epochs and producer states to the log's bounds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import read_topic_id
from tailrace.log.disk.files import Files, join
from tailrace.log.disk.log_folder import LogFolder
from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.partition_log import LogState, PartitionLog
from tailrace.log.producers.producer_replay import rebuild_producers
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.recovery.broken_files import copy_tail, has_whole_batch, set_segments_aside
from tailrace.log.recovery.interrupted_swap import finish_interrupted_changes
from tailrace.log.recovery.recovery_scan import RecoveryScan
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import Segment, SegmentOverflow
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.segments.segment_swap import swap_segments
from tailrace.log.upkeep.log_offsets import is_tiered
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch

_log = logging.getLogger(__name__)
_ENTRY_SIZES = {file_names.OFFSET_INDEX: 8, file_names.TIME_INDEX: 12, file_names.TRANSACTION_INDEX: 34}


@dataclass(slots=True)
class RecoveryReport:
    """The work of opening a log. It is empty after a clean stop."""

    segments_scanned: int = 0
    bytes_scanned: int = 0
    bytes_cut: int = 0
    indexes_rebuilt: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def no_jitter() -> int:
    return 0


def open_log(
    files: Files,
    directory: str,
    config: TopicConfig,
    *,
    now_ms: int,
    log_start_offset: Offset = 0,
    recovery_point: Offset = 0,
    clean: bool = False,
    recover: bool | None = None,
    may_have_gaps: bool = True,
    new_jitter_ms: Callable[[], int] = no_jitter,
    producer_expiration_ms: int = 86_400_000,
    report: RecoveryReport | None = None,
) -> PartitionLog:
    """Open the log in `directory` (named `topic-N`), which is created if it does not exist.

    After an unclean stop the unflushed segments are read whole. `recover=False` skips that for inspections, for which a
    torn tail is an error. `may_have_gaps=False` means that unflushed offsets do not jump. If they do, also from one
    segment to the next, records are lost and the log ends there.
    """
    partition = file_names.parse_partition_folder(directory.rpartition("/")[2])
    if partition is None:
        raise ValueError(f"{directory} is not named like a partition's folder, topic-N")
    if not files.exists(directory):
        files.make_directory(directory)
    state = _StateAtStop(
        log_start_offset, recovery_point, clean, not clean if recover is None else recover, may_have_gaps
    )
    settings = _LogSettings(config, now_ms, new_jitter_ms, producer_expiration_ms)
    return _Loader(files, directory, partition, settings, state, report or RecoveryReport()).load()


class _StateAtStop(NamedTuple):
    """The state of the log when it was last closed."""

    log_start_offset: Offset
    recovery_point: Offset
    clean: bool
    recover: bool
    may_have_gaps: bool


class _LogSettings(NamedTuple):
    config: TopicConfig
    now_ms: int
    new_jitter_ms: Callable[[], int]
    producer_expiration_ms: int


class _Loader:
    """The steps of opening, with their shared state."""

    def __init__(
        self,
        files: Files,
        directory: str,
        partition: TopicPartition,
        settings: _LogSettings,
        state: _StateAtStop,
        report: RecoveryReport,
    ) -> None:
        self.files = files
        self.directory = directory
        self.partition = partition
        self.config, self.now_ms, self.new_jitter_ms, self.producer_expiration_ms = settings
        self.log_start_offset, self.recovery_point, self.clean, self.recover, self.may_have_gaps = state
        self.may_be_torn = True
        self.report = report
        self.segments = SegmentList()
        self.unindexed: set[Offset] = set()
        self.epochs = LeaderEpochs(files, join(directory, file_names.LEADER_EPOCH_CHECKPOINT))

    def load(self) -> PartitionLog:
        names = self._names()
        if any(name.endswith((file_names.CLEANED, file_names.SWAP, file_names.DELETED)) for name in names):
            finish_interrupted_changes(self.files, self.directory, self.config)
            names = self._names()
        if file_names.LEADER_EPOCH_CHECKPOINT not in names:
            self.files.write(self.epochs.path, b"", sync=False)  # an empty file, as Kafka creates it
        self.epochs.load_for_recovery()
        self._load_segments(names)
        self._recover_segments()
        end = self._end_of_log()
        if self.clean and 0 < self.recovery_point < end:
            # A clean stop flushes everything. Anything beyond that point is checked as after an unclean stop.
            self.clean, self.recover, self.may_be_torn = False, True, False
            self._recover_segments()
            end = self._end_of_log()
        if end < self.recovery_point:
            lost = f"{self.directory} ends at {end}, but was flushed up to {self.recovery_point}: records are missing"
            self.report.problems.append(lost)
            _log.warning("%s: %s", self.partition, lost)
        recovery_point = end if self.clean else min(self.recovery_point, end)
        # With tiered storage the log begins in the remote store, below the first local segment.
        first = 0 if is_tiered(self.partition, self.config) else self.segments.first.base_offset
        start = max(self.log_start_offset, first)
        self.epochs.recovered(self.log_start_offset, end)
        producers = self._new_producer_states()
        producers.remove_stray_snapshots(self.segments.base_offsets)
        rebuild_producers(producers, self.segments, start, end, self.now_ms, clean=self.clean)
        active = self.segments.active
        marks = Watermarks(start, LogPosition(end, active.base_offset, active.size), LogPosition(start))
        metadata = join(self.directory, file_names.PARTITION_METADATA)
        topic_id = read_topic_id(self.files, metadata) if file_names.PARTITION_METADATA in names else None
        log = PartitionLog(
            LogFolder(self.files, self.directory, self.partition, topic_id),
            self.config,
            LogState(self.segments, marks, self.epochs, producers),
            recovery_point=recovery_point,
            new_jitter_ms=self.new_jitter_ms,
            now_ms=self.now_ms,
        )
        if not self.clean:
            log.durability.note_cut(end)  # recovery may have cut files without a sync
            log.durability.note_name()  # nor are the names that it has found durable
        return log

    def _new_producer_states(self) -> ProducerStates:
        return ProducerStates(self.files, self.directory, self.partition, self.producer_expiration_ms)

    def _names(self) -> list[str]:
        return sorted(entry.name for entry in self.files.entries(self.directory) if not entry.is_directory)

    # 2. Segments

    def _load_segments(self, names: list[str]) -> None:
        present = set(names)
        for name in names:
            found = file_names.parse_segment_file(name)
            if not found or found[1] == file_names.PRODUCER_SNAPSHOT:
                continue
            base, kind, _ = found
            if kind != file_names.LOG:
                if file_names.segment_file(base, file_names.LOG) not in present:
                    self.report.problems.append(f"{join(self.directory, name)} has no log file beside it; removed")
                    _log.warning("%s: index without a log file removed: %s", self.partition, name)
                    self.files.remove(join(self.directory, name))
                continue
            segment = Segment.open(self.files, self.directory, base, self.config, jitter_ms=self.new_jitter_ms())
            problem = self._index_problem(segment, present)
            if problem:
                self._rebuild_indexes(segment, problem)
            self.segments.add(segment)
        if self.clean and len(self.segments) and self.segments.active.base_offset not in self.unindexed:
            problem = self.segments.active.index_problem()
            if problem:
                self._rebuild_indexes(self.segments.active, problem)

    def _rebuild_indexes(self, segment: Segment, problem: str) -> None:
        self.report.indexes_rebuilt.append(segment.log.path)
        self.report.problems.append(problem)
        _log.warning("%s: indexes are rebuilt: %s", self.partition, problem)
        self.unindexed.add(segment.base_offset)

    def _index_problem(self, segment: Segment, present: set[str]) -> str | None:
        """Return why a segment's indexes cannot be used. Only their sizes are checked, not their bytes."""
        for kind, width in _ENTRY_SIZES.items():
            name = file_names.segment_file(segment.base_offset, kind)
            if name not in present:
                if kind == file_names.TRANSACTION_INDEX:
                    continue  # there were no aborted transactions
                return f"{join(self.directory, name)} is missing"
            size = self.files.size(join(self.directory, name))
            if size % width:
                return f"{join(self.directory, name)} has {size} bytes, which is not a multiple of {width}"
        if file_names.segment_file(segment.base_offset, file_names.TRANSACTION_INDEX) in present:
            try:
                _ = segment.transaction_index.entries
            except CorruptIndex as error:
                return str(error)
        return None

    # 3. Recovery

    def _recover_segments(self) -> None:
        """Recover, in offset order, the unflushed segments and those whose indexes are rebuilt."""
        unflushed = {segment.base_offset for segment in self.segments.between(self.recovery_point, LONG_MAX)}
        if self.recover and unflushed and (self.recovery_point or not self.may_have_gaps):
            self.epochs.truncate_end(min(unflushed))  # found again in the records, which may be newer than the file
        for segment in list(self.segments):
            if segment.base_offset not in self.segments:
                return
            if self.recover and segment.base_offset in unflushed:
                last = self._recover_or_split(segment, self.segments.after(segment.base_offset))
                later = self.segments.after(last.base_offset)
                if later and not self.may_have_gaps and last.next_offset() < later[0].base_offset:
                    # The last writes of this segment did not reach the disk, but those of the next one did.
                    self._set_aside(later, last)
            elif segment.base_offset in self.unindexed:
                self._recover_or_split(segment, None)

    def _recover_or_split(self, segment: Segment, later: Sequence[Segment] | None) -> Segment:
        """Recover a segment, or split it if its offsets overflow. Return the segment, or the last part of it."""
        try:
            self._recover(segment, later)
        except SegmentOverflow:
            parts = self._split(segment)
            for part in parts:
                self._recover(part, None)
            return parts[-1]
        return segment

    def _recover(self, segment: Segment, later: Sequence[Segment] | None) -> None:
        """Read a segment whole and rebuild its indexes, epochs and producers.

        The first bad batch ends the log, and removes the `later` segments. They are None for a flushed segment. There a
        bad batch is damage, not a torn write, and stays where it is.
        """
        states = self._new_producer_states()
        rebuild_producers(states, self.segments, self.log_start_offset, segment.base_offset, self.now_ms, clean=False)
        self.report.segments_scanned += 1
        self.report.bytes_scanned += segment.size
        segment.start_rebuild()
        is_flushed = later is None
        end = self._end_of(segment, is_flushed=is_flushed)
        # Flushed data is not a torn write, so a gap in it is from compaction.
        gaps_end = LONG_MAX if is_flushed or self.may_have_gaps else self.recovery_point
        scan = RecoveryScan(segment, self.epochs, states, end, gaps_end)
        valid = segment.size
        try:
            scan.run(self._note_problem if is_flushed else None)
        except CorruptBatch as error:
            self._note_problem(error)
            if later is not None:
                valid = error.position or 0
                # A torn tail is not kept, unless it contains whole batches.
                if not self.may_be_torn or has_whole_batch(segment, valid):
                    self.report.broken.append(copy_tail(self.files, self.directory, segment, valid))
                # First the later segments, then the cut itself: after a crash in between, both are done again.
                self._set_aside(later, segment)
        self.report.bytes_cut += segment.finish_rebuild(scan.found, valid)
        states.take_snapshot()
        segment.release()

    def _note_problem(self, problem: CorruptBatch) -> None:
        self.report.problems.append(str(problem))
        _log.warning("%s: %s", self.partition, problem)

    def _end_of(self, segment: Segment, *, is_flushed: bool) -> Offset:
        """Return an offset that no batch of a segment reaches."""
        ends = [later.base_offset for later in self.segments.after(segment.base_offset)[:1]]
        if is_flushed and self.recovery_point:
            ends.append(self.recovery_point)
        return min(ends, default=LONG_MAX)

    def _set_aside(self, later: Sequence[Segment], cut: Segment) -> None:
        """Keep the data of segments after a cut as `.broken`, and remove their indexes."""
        self.report.broken += set_segments_aside(self.files, self.directory, self.segments, later)
        for segment in reversed(later):
            self.report.problems.append(f"{segment.log.path} follows {cut.log.path}, which was cut; set aside")

    def _split(self, segment: Segment) -> list[Segment]:
        """Split a segment whose offsets span more than 2^31."""
        parts: list[Segment] = []
        expected = segment.base_offset
        for header, view in segment.batches():
            if not expected <= header.base_offset <= header.last_offset < LONG_MAX:
                reason = f"offsets {header.base_offset} to {header.last_offset}, but the next is {expected}"
                raise CorruptBatch(reason, path=segment.log.path, position=header.position)
            expected = header.next_offset
            if not parts or not parts[-1].offset_index.fits(header.last_offset):
                part = Segment.create(
                    self.files,
                    self.directory,
                    header.base_offset,
                    self.config,
                    now_ms=self.now_ms,
                    suffix=file_names.CLEANED,
                )
                parts.append(part)
            parts[-1].append(view, [(header.size, header.last_offset, header.max_timestamp)])
        for part in parts:
            part.seal()
            part.flush()
        swap_segments(self.files, self.directory, self.segments, parts, [segment])
        segment.release()
        segment.remove_files()
        return parts

    def _end_of_log(self) -> Offset:
        if len(self.segments):
            end = self.segments.active.next_offset()
            if end >= self.log_start_offset:
                return end
            problem = f"{self.directory} ends at {end}, before its log start offset {self.log_start_offset}"
            self.report.problems.append(problem)
            _log.warning("%s: all segments are set aside: %s", self.partition, problem)
            self._set_aside(list(self.segments), self.segments.first)
            self.epochs.clear()
        segment = Segment.create(
            self.files,
            self.directory,
            self.log_start_offset,
            self.config,
            now_ms=self.now_ms,
            jitter_ms=self.new_jitter_ms(),
        )
        self.segments.add(segment)
        self.files.sync_directory(self.directory)
        return self.log_start_offset
