"""Open a partition's folder: carry interrupted changes on, rebuild what is a hint, cut a torn tail.

After a clean stop nothing is scanned: segments are opened by name, the last one is read from its last index entry on,
producers come from their snapshot. After an unclean stop the segments from the recovery point on are read whole: each
batch's checksum holds, or the log ends before it. What is cut because of a damaged batch, with whole batches after it,
is kept beside the log as a `.broken` file; a torn tail is not.

    1. `.deleted` files go; `.cleaned` files go, with the `.swap` files they make invalid; other swaps are carried on.
    2. Segments are loaded. An index file that is missing or of an impossible size is rebuilt.
    3. Unclean: recover segment by segment from the recovery point on; after a cut the later segments go.
    4. Leader epochs and producer states are brought to the log's bounds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import read_topic_id
from tailrace.log.disk.files import Files, join
from tailrace.log.inspect.resync import next_position
from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_replay import rebuild_producers
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.recovery.interrupted_swap import finish_interrupted_changes
from tailrace.log.recovery.recovery_scan import RecoveryScan, check_batch
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import Segment, SegmentOverflow
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.segments.segment_swap import swap_segments
from tailrace.log.upkeep.deferred import Deferred
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch

_log = logging.getLogger(__name__)
_COPY_CHUNK = 1024 * 1024
_ENTRY_SIZES = {file_names.OFFSET_INDEX: 8, file_names.TIME_INDEX: 12, file_names.TRANSACTION_INDEX: 34}


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log had to do; empty after a clean stop."""

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
    """The log in `directory` (named `topic-N`), which is made if it is not there.

    After an unclean stop the unflushed segments are read whole; `recover=False` leaves that out, for one who only looks
    and takes a torn tail as an error. `may_have_gaps=False` says that unflushed offsets do not jump, so that where they
    do, also from one segment to the next, something is lost and the log ends.
    """
    partition = file_names.parse_partition_folder(directory.rpartition("/")[2])
    if partition is None:
        raise ValueError(f"{directory} is not named like a partition's folder, topic-N")
    files.make_directory(directory)
    loader = _Loader(
        files,
        directory,
        partition,
        config,
        now_ms=now_ms,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        clean=clean,
        recover=not clean if recover is None else recover,
        may_have_gaps=may_have_gaps,
        new_jitter_ms=new_jitter_ms,
        producer_expiration_ms=producer_expiration_ms,
        report=report or RecoveryReport(),
    )
    return loader.load()


class _Loader:
    """The steps of opening, with what they share."""

    def __init__(
        self,
        files: Files,
        directory: str,
        partition: TopicPartition,
        config: TopicConfig,
        *,
        now_ms: int,
        log_start_offset: Offset,
        recovery_point: Offset,
        clean: bool,
        recover: bool,
        may_have_gaps: bool,
        new_jitter_ms: Callable[[], int],
        producer_expiration_ms: int,
        report: RecoveryReport,
    ) -> None:
        self.files = files
        self.directory = directory
        self.partition = partition
        self.config = config
        self.now_ms = now_ms
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self.clean = clean
        self.recover = recover
        self.may_be_torn = True
        self.may_have_gaps = may_have_gaps
        self.new_jitter_ms = new_jitter_ms
        self.producer_expiration_ms = producer_expiration_ms
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
            self.files.write(self.epochs.path, b"", sync=False)  # as Kafka makes it: there, and empty
        self.epochs.load_for_recovery()
        self._load_segments(names)
        self._recover_segments()
        end = self._end_of_log()
        if self.clean and 0 < self.recovery_point < end:
            # A clean stop flushes everything. What is there beyond it is looked at as after an unclean one.
            self.clean, self.recover, self.may_be_torn = False, True, False
            self._recover_segments()
            end = self._end_of_log()
        if end < self.recovery_point:
            lost = f"{self.directory} ends at {end}, but was flushed up to {self.recovery_point}: records are missing"
            self.report.problems.append(lost)
            _log.warning("%s: %s", self.partition, lost)
        recovery_point = end if self.clean else min(self.recovery_point, end)
        start = max(self.log_start_offset, self.segments.first.base_offset)
        self.epochs.recovered(self.log_start_offset, end)
        producers = self._new_producer_states()
        producers.remove_stray_snapshots(self.segments.base_offsets)
        rebuild_producers(producers, self.segments, start, end, self.now_ms, clean=self.clean)
        active = self.segments.active
        marks = Watermarks(start, LogPosition(end, active.base_offset, active.size), LogPosition(start))
        metadata = join(self.directory, file_names.PARTITION_METADATA)
        return PartitionLog(
            self.files,
            self.directory,
            self.partition,
            self.config,
            segments=self.segments,
            marks=marks,
            epochs=self.epochs,
            producers=producers,
            deferred=Deferred(),
            recovery_point=recovery_point,
            topic_id=read_topic_id(self.files, metadata) if file_names.PARTITION_METADATA in names else None,
            new_jitter_ms=self.new_jitter_ms,
            now_ms=self.now_ms,
        )

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
        """Why a segment's indexes cannot be used as they are; their sizes are looked at, not their bytes."""
        for kind, width in _ENTRY_SIZES.items():
            name = file_names.segment_file(segment.base_offset, kind)
            if name not in present:
                if kind == file_names.TRANSACTION_INDEX:
                    continue  # there were no aborted transactions
                return f"{join(self.directory, name)} is missing"
            size = self.files.size(join(self.directory, name))
            if size % width:
                return f"{join(self.directory, name)} has {size} bytes, no multiple of {width}"
        if file_names.segment_file(segment.base_offset, file_names.TRANSACTION_INDEX) in present:
            try:
                _ = segment.transaction_index.entries
            except CorruptIndex as error:
                return str(error)
        return None

    # 3. Recovery

    def _recover_segments(self) -> None:
        """In order of offsets, so that what comes before a segment is sound: those not flushed, those to be indexed."""
        unflushed = {segment.base_offset for segment in self.segments.between(self.recovery_point, LONG_MAX)}
        if self.recover and unflushed and (self.recovery_point or not self.may_have_gaps):
            self.epochs.truncate_end(min(unflushed))  # the records tell anew; the file may be older than they are
        for segment in list(self.segments):
            if segment.base_offset not in self.segments:
                return
            if self.recover and segment.base_offset in unflushed:
                last = self._recover_or_split(segment, self.segments.after(segment.base_offset))
                later = self.segments.after(last.base_offset)
                if later and not self.may_have_gaps and last.next_offset() < later[0].base_offset:
                    # Its last writes did not reach the disk, those of the next segment did.
                    self._set_aside(later, last)
            elif segment.base_offset in self.unindexed:
                self._recover_or_split(segment, None)

    def _recover_or_split(self, segment: Segment, later: Sequence[Segment] | None) -> Segment:
        """Recover a segment; one whose offsets overflow is split instead. What is there now, or the last part of it."""
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

        The first bad batch ends the log, and `later` segments with it. They are None for a segment that was flushed:
        then a bad batch is damage, not a torn write, and stays where it is.
        """
        states = self._new_producer_states()
        rebuild_producers(states, self.segments, self.log_start_offset, segment.base_offset, self.now_ms, clean=False)
        self.report.segments_scanned += 1
        self.report.bytes_scanned += segment.size
        segment.start_rebuild()
        is_flushed = later is None
        end = self._end_of(segment, is_flushed=is_flushed)
        # What was flushed is no torn write: a gap in it is compaction's.
        gaps_end = LONG_MAX if is_flushed or self.may_have_gaps else self.recovery_point
        scan = RecoveryScan(segment, self.epochs, states, end, gaps_end)
        valid = segment.size
        try:
            scan.run(self._note_problem if is_flushed else None)
        except CorruptBatch as error:
            self._note_problem(error)
            if later is not None:
                valid = error.position or 0
                self._keep_whole_batches(segment, valid)
                # First what follows, then the cut itself: after a crash in between, this is done again.
                self._set_aside(later, segment)
        self.report.bytes_cut += segment.finish_rebuild(scan.found, valid)
        states.take_snapshot()
        segment.release()

    def _note_problem(self, problem: CorruptBatch) -> None:
        self.report.problems.append(str(problem))
        _log.warning("%s: %s", self.partition, problem)

    def _end_of(self, segment: Segment, *, is_flushed: bool) -> Offset:
        """An offset that no batch of a segment reaches."""
        ends = [later.base_offset for later in self.segments.after(segment.base_offset)[:1]]
        if is_flushed and self.recovery_point:
            ends.append(self.recovery_point)
        return min(ends, default=LONG_MAX)

    def _keep_whole_batches(self, segment: Segment, position: int) -> None:
        """A torn tail is noise; whole batches in it are data, and kept aside. So is what cannot be a torn tail."""
        if not self.may_be_torn or self._has_whole_batch(segment, position):
            target = f"{segment.log.path}.{position}.broken"
            self._copy(segment, position, target)
            self.report.broken.append(target)

    def _has_whole_batch(self, segment: Segment, position: int) -> bool:
        """Whether a checksum holds in what would be cut: behind the damage, or at it, if only the offset is wrong."""
        try:
            check_batch(*next(segment.batches(position)))
            return True
        except CorruptBatch:
            return next_position(segment.log, position, segment.size, segment.base_offset, None) is not None

    def _copy(self, segment: Segment, position: int, target: str) -> None:
        copy = self.files.open(target, create=True)
        try:
            copy.truncate(0)
            done = 0
            while position + done < segment.size:
                chunk = segment.log.read(position + done, min(_COPY_CHUNK, segment.size - position - done))
                if not chunk:
                    break
                copy.write(done, chunk)
                done += len(chunk)
            copy.sync()
        finally:
            copy.close()
        self.files.sync_directory(self.directory)

    def _set_aside(self, later: Sequence[Segment], cut: Segment) -> None:
        """Segments after a cut do not follow it any more: their data is kept as `.broken`, their indexes go."""
        for segment in reversed(later):
            self.segments.remove(segment.base_offset)
            segment.release()
            if segment.size:
                target = f"{segment.log.path}.broken"
                self.files.replace(segment.log.path, target)
                self.report.broken.append(target)
            segment.remove_files()
            self.files.remove(
                join(self.directory, file_names.segment_file(segment.base_offset, file_names.PRODUCER_SNAPSHOT))
            )
            self.report.problems.append(f"{segment.log.path} follows {cut.log.path}, which was cut; set aside")
            self.files.sync_directory(self.directory)

    def _split(self, segment: Segment) -> list[Segment]:
        """Cut a segment whose offsets span more than 2^31 into several that do not."""
        parts: list[Segment] = []
        expected = segment.base_offset
        for header, view in segment.batches():
            if not expected <= header.base_offset <= header.last_offset < LONG_MAX:
                reason = f"offsets {header.base_offset} to {header.last_offset} where {expected} is next"
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
