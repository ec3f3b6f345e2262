"""The cleaner: compacts one log, segment group by segment group.

    1  build the map    walk the dirty range and store the latest offset of every key (`compaction.KeyScan`); a full map
                        ends the range early, and the next round continues there
    2  group            neighbouring segments that together fit one segment: by bytes, index entries, offset range
    3  write a group    write its remaining records and indexes as one `.cleaned` segment, durable, dated like the
       original
    4  swap it in       `PartitionLog.replace_segments`; then the next group

Steps 1 and 3 only read sealed segments and write new files, so they may run beside the thread that changes the log.
Steps 2 and 4, and the creation of a `Cleaning`, belong to that thread. After a failure (a corrupt batch, a full disk, a
request to stop) the groups already swapped stay, the rest of the log is unchanged, and no `.cleaned` file is left. The
next round starts again, which is harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tailrace.log.compaction.cleaned_segment import (
    IO_BUFFER_BYTES,
    CleaningRules,
    GroupWriter,
    SegmentWalk,
    remove_cleaned,
    with_following,
)
from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.cleaner_kernels import SLOT_SIZE
from tailrace.log.compaction.cleaner_range import DirtyRange
from tailrace.log.compaction.compaction import KeyScan, LastRecord, LatestOffsets
from tailrace.log.compaction.segment_groups import group_segments
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.open_segments import reopened
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset, ProducerId

_log = logging.getLogger(__name__)


class CleaningAborted(Exception):
    """Cleaning was stopped on request, or the log changed meanwhile. The log is not damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Kafka's log.cleaner.dedupe.buffer.size (for one cleaner), …load.factor and …io.buffer.size."""

    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    load_factor: float = 0.9
    io_buffer_bytes: int = IO_BUFFER_BYTES
    salt: bytes = bytes(16)  # 16 secret bytes, so that clients cannot choose keys that collide


@dataclass(slots=True, kw_only=True)
class CleanerStats:
    started_ms: int
    map_built_ms: int = -1
    ended_ms: int = -1
    map_bytes_read: int = 0
    map_records_read: int = 0
    map_utilization: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    records_without_key: int = 0


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of a round: the log is clean up to `end_offset`, which goes into the cleaner checkpoint."""

    end_offset: Offset
    stats: CleanerStats


def clean_log(
    files: Files,
    log: PartitionLog,
    dirty: DirtyRange,
    now_ms: int,
    settings: CleanerSettings | None = None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    clock_ms: Callable[[], int] | None = None,
) -> Cleaned:
    """Clean a log once, with all steps on this thread. `now_ms` decides on tombstones, `clock_ms` only measures the
    work."""
    cleaning = Cleaning(files, log, dirty, now_ms, settings, should_stop=should_stop, clock_ms=clock_ms)
    cleaning.build_map()
    for group in cleaning.groups():
        cleaning.swap(cleaning.write_group(group), group)
    return cleaning.finish()


class Cleaning:
    """One round over one log."""

    def __init__(
        self,
        files: Files,
        log: PartitionLog,
        dirty: DirtyRange,
        now_ms: int,
        settings: CleanerSettings | None = None,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        self._files = files
        self._log = log
        self._dirty = dirty
        self._now_ms = now_ms
        self._settings = settings or CleanerSettings()
        self._should_stop = should_stop
        self._clock_ms = clock_ms or (lambda: now_ms)
        self._config = log.config
        self._end = dirty.first_uncleanable_offset
        self._segments = log.segments.between(0, self._end)
        # The limit is all the allowed memory. The map uses only as much as the keys need.
        self._latest = LatestOffsets(
            self._settings.dedupe_buffer_bytes // SLOT_SIZE, self._settings.load_factor, self._settings.salt
        )
        self._walk = SegmentWalk(self._settings.io_buffer_bytes, self._check_stop)
        self._writer = GroupWriter(
            files,
            cleaning_rules(files, log, dirty, now_ms),
            self._latest,
            CleanedTransactions(),
            partial(aborted_from, log),
            self._walk,
        )
        self.stats = CleanerStats(started_ms=self._clock_ms())

    @property
    def end_offset(self) -> Offset:
        """The offset up to which the map is complete. The log will be clean up to there."""
        return max(self._latest.latest_offset + 1, self._dirty.first_dirty_offset)

    def _check_stop(self) -> None:
        if self._should_stop():
            raise CleaningAborted(f"{self._log.partition}: cleaning was stopped on request")

    @contextmanager
    def _abort_if_renamed(self) -> Iterator[None]:
        """Stop the round if a segment was deleted while it was read: its files have other names then."""
        try:
            yield
        except FileNotFoundError as error:
            raise CleaningAborted(f"{self._log.partition}: a segment was deleted while it was cleaned") from error

    # 1. The map

    def build_map(self) -> None:
        with self._abort_if_renamed():
            self._build_map()

    def _build_map(self) -> None:
        start = self._dirty.first_dirty_offset
        dirty = [reopened(self._files, segment) for segment in self._log.segments.between(start, self._end)]
        transactions = CleanedTransactions()
        transactions.add_aborted(aborted_from(self._log, start, self._end))
        scan = KeyScan(self._latest, start, transactions)
        for segment, following in with_following(dirty):
            for used in self._walk(segment, segment.offset_start(start).position, scan.add):
                self.stats.map_bytes_read += used
                if scan.is_full:
                    break
            if scan.is_full:
                break
            # After the segment's last record there may be a gap that compaction has left. It has no records.
            scan.skip_to(following.base_offset if following else self._end)
        self.stats.map_records_read = scan.records_read
        self.stats.map_utilization = self._latest.size / (self._settings.dedupe_buffer_bytes // SLOT_SIZE)
        self.stats.map_built_ms = self._clock_ms()

    # 2. Groups

    def groups(self) -> list[list[Segment]]:
        """Return the segments to clean, grouped by the segment that they become."""
        segments = [segment for segment in self._segments if segment.base_offset <= self._latest.latest_offset]
        return group_segments(segments, self._config.roll_bytes, self._config.segment_index_bytes, self._end)

    # 3. A cleaned segment

    def write_group(self, group: list[Segment]) -> Segment:
        """Write the remaining records of a group into a `.cleaned` segment. If that fails, no file is left."""
        with self._abort_if_renamed():
            cleaned = self._writer.write([reopened(self._files, one) for one in group], self._log.directory)
        self.stats.bytes_read, self.stats.bytes_written = self._writer.bytes_read, self._writer.bytes_written
        return cleaned

    # 4. The swap

    def swap(self, cleaned: Segment, group: list[Segment]) -> None:
        """Replace a group with its cleaned segment. Raise CleaningAborted if the log has lost a segment of the group
        meanwhile."""
        if any(self._log.segments.get(segment.base_offset) is not segment for segment in group):
            cleaned.release()
            remove_cleaned(self._files, self._log.directory, cleaned.base_offset)
            raise CleaningAborted(f"{self._log.partition}: segments were deleted while they were cleaned")
        self._log.replace_segments([cleaned], group, self._now_ms)

    def finish(self) -> Cleaned:
        stats, survivors = self.stats, self._writer.survivors
        stats.records_read = survivors.records_read
        stats.records_written = survivors.records_kept
        stats.records_without_key = survivors.records_without_key
        stats.ended_ms = self._clock_ms()
        _log.info("%s: cleaned up to %d: %s", self._log.partition, self.end_offset, stats)
        return Cleaned(self.end_offset, stats)


def aborted_from(log: PartitionLog, start: Offset, end: Offset) -> list[AbortedTransaction]:
    """Return the aborted transactions in the indexes of the segment that contains `start` and of later segments."""
    segments = log.segments
    slot = segments.floor_slot(start)
    if slot < 0:
        return []
    return segments.aborted_transactions(segments[slot].base_offset, log.log_start_offset, end)


def cleaning_rules(files: Files, log: PartitionLog, dirty: DirtyRange, now_ms: int) -> CleaningRules:
    clean = log.segments.between(0, dirty.first_dirty_offset)
    retention_ms = log.config.delete_retention_ms
    return CleaningRules(
        config=log.config,
        now_ms=now_ms,
        end_offset=dirty.first_uncleanable_offset,
        last_records=_last_records(log),
        legacy_horizon_ms=files.modified_ms(clean[-1].log.path) - retention_ms if clean else 0,
    )


def _last_records(log: PartitionLog) -> dict[ProducerId, LastRecord]:
    return {
        producer_id: LastRecord(state.last_offset if state.last_offset >= 0 else None, state.producer_epoch)
        for producer_id, state in log.producers.producers.items()
    }
