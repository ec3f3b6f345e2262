"""LogCleaning: compaction in the background, one log at a time, the dirtiest first.

A round compacts one log. Its long steps build the map of keys and write new segments. They only read sealed segments
and write new files, so chores do them on worker threads. A Spark job can do them too, and leave its result as a
proposal. The short steps happen here: choose a log, swap in new segments, write the cleaner checkpoint. A round that
fails does not change the log. That log is skipped for a while, so that the others get their turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from tailrace.log.compaction.cleaner import Cleaned, CleanerSettings, Cleaning, CleaningAborted
from tailrace.log.compaction.cleaner_checkpoint import CleanerCheckpoint
from tailrace.log.compaction.cleaner_range import DirtyRange, find_dirty_range
from tailrace.log.compaction.proposal import RefusedProposal, is_waiting, take
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import TopicPartition
from tailrace.waiting.chore import Chore, FunctionChore

_log = logging.getLogger(__name__)

_WAIT_AFTER_FAILURE_MS = 10 * 60_000


class LogCleaning:
    def __init__(
        self,
        files: Files,
        logs: LogDirectories,
        submit: Callable[[Chore], None],
        settings: CleanerSettings,
        *,
        backoff_ms: int,
        now_ms: int,
    ) -> None:
        self._files = files
        self._logs = logs
        self._submit = submit
        self._settings = settings
        self._backoff_ms = backoff_ms
        self._failed_until: dict[TopicPartition, int] = {}
        self._is_busy = False
        self._due_ms = now_ms + backoff_ms
        self.paused: set[TopicPartition] = set()  # partitions that are being moved to another directory
        self.current: TopicPartition | None = None
        self.rounds = 0  # rounds that succeeded
        self.proposals = 0  # proposals that were swapped in
        self.failures = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.last_round_ms: int | None = None

    def next_deadline_ms(self) -> int | None:
        return None if self._is_busy else self._due_ms

    def tick(self, now_ms: int) -> None:
        if self._is_busy or now_ms < self._due_ms:
            return
        self._due_ms = now_ms + self._backoff_ms
        self._take_proposals(now_ms)
        found = self._dirtiest(now_ms)
        if found is not None:
            _Round(self, *found, now_ms)

    def _take_proposals(self, now_ms: int) -> None:
        """Swap in the segments that Spark jobs have compacted (`log/compaction/proposal.py`)."""
        for directory in self._logs.online:
            try:
                for log in list(directory.logs.values()):
                    if log.config.is_compacted and is_waiting(self._files, log.directory):
                        self._take_proposal(directory, log, now_ms)
            except OSError as error:
                self._logs.on_failure(directory, error)

    def _take_proposal(self, directory: LogDirectory, log: PartitionLog, now_ms: int) -> None:
        checkpoint = CleanerCheckpoint(self._files, directory.path)
        clean_to = checkpoint.read().get(log.partition)
        end = find_dirty_range(log, clean_to, now_ms).first_uncleanable_offset
        replace = partial(log.replace_segments, now_ms=now_ms)
        try:
            clean = take(self._files, log.directory, log.segments, log.config, replace, clean_to=clean_to, end=end)
        except RefusedProposal as error:
            _log.warning("%s: the proposed compaction is refused: %s", log.partition, error)
            return
        if clean is not None:
            checkpoint.update(log.partition, clean, directory.logs.keys())
            self.proposals += 1
            _log.info(
                "%s: the proposed compaction was swapped in; the log is clean up to offset %d", log.partition, clean
            )

    def _dirtiest(self, now_ms: int) -> tuple[LogDirectory, PartitionLog, DirtyRange] | None:
        best: tuple[LogDirectory, PartitionLog, DirtyRange] | None = None
        for directory in self._logs.online:
            compacted = [log for log in directory.logs.values() if log.config.is_compacted]
            if not compacted:
                continue
            try:
                clean_to = CleanerCheckpoint(self._files, directory.path).read()
            except OSError as error:
                self._logs.on_failure(directory, error)
                continue
            for log in compacted:
                if log.partition in self.paused or self._failed_until.get(log.partition, 0) > now_ms:
                    continue
                dirty = find_dirty_range(log, clean_to.get(log.partition), now_ms)
                if dirty.is_due(log.config.min_cleanable_dirty_ratio) and (
                    best is None or dirty.cleanable_ratio > best[2].cleanable_ratio
                ):
                    best = directory, log, dirty
        return best

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    def skipped_count(self, now_ms: int) -> int:
        """Return the number of logs that are skipped for a while because a round failed."""
        return sum(until_ms > now_ms for until_ms in self._failed_until.values())

    def started(self, log: PartitionLog) -> None:
        self._is_busy = True
        self.current = log.partition

    def submit(self, step: FunctionChore) -> None:
        self._submit(step)

    def ended(self, directory: LogDirectory, log: PartitionLog, cleaned: Cleaned, now_ms: int) -> None:
        """Note that a round has succeeded. The next log may be due at once."""
        if directory.logs.get(log.partition) is log:
            checkpoint = CleanerCheckpoint(self._files, directory.path)
            try:
                checkpoint.update(log.partition, cleaned.end_offset, directory.logs.keys())
            except OSError as error:
                self._logs.on_failure(directory, error)
        self.rounds += 1
        self.bytes_read += cleaned.stats.bytes_read
        self.bytes_written += cleaned.stats.bytes_written
        self.last_round_ms = now_ms
        self._is_busy = False
        self.current = None
        self._due_ms = now_ms

    def gave_up(self, log: PartitionLog, error: BaseException, now_ms: int) -> None:
        self._is_busy = False
        self.current = None
        if isinstance(error, CleaningAborted):
            _log.info("compaction aborted: %s", error)
            return
        _log.error("%s could not be compacted; the next attempt is in ten minutes: %s", log.partition, error)
        self.failures += 1
        self._failed_until[log.partition] = now_ms + _WAIT_AFTER_FAILURE_MS

    def new_round(self, log: PartitionLog, dirty: DirtyRange, now_ms: int) -> Cleaning:
        return Cleaning(self._files, log, dirty, now_ms, self._settings)


class _Round:
    """The compaction of one log, step by step."""

    def __init__(
        self, owner: LogCleaning, directory: LogDirectory, log: PartitionLog, dirty: DirtyRange, now_ms: int
    ) -> None:
        self._owner = owner
        self._directory = directory
        self._log = log
        self._cleaning = owner.new_round(log, dirty, now_ms)
        self._groups: list[list[Segment]] = []
        owner.started(log)
        owner.submit(FunctionChore(self._cleaning.build_map, self._map_built, self._failed))

    def _map_built(self, _: object, now_ms: int) -> None:
        self._groups = self._cleaning.groups()
        self._next(now_ms)

    def _next(self, now_ms: int) -> None:
        if not self._groups:
            self._owner.ended(self._directory, self._log, self._cleaning.finish(), now_ms)
            return
        group = self._groups.pop(0)
        cleaning = self._cleaning
        self._owner.submit(
            FunctionChore(
                lambda: cleaning.write_group(group), lambda cleaned, now: self._swap(cleaned, group, now), self._failed
            )
        )

    def _swap(self, cleaned: Segment, group: list[Segment], now_ms: int) -> None:
        try:
            self._cleaning.swap(cleaned, group)
        except (CleaningAborted, OSError) as error:  # the log was truncated or deleted meanwhile, or the disk failed
            self._failed(error, now_ms)
            return
        self._next(now_ms)

    def _failed(self, error: BaseException, now_ms: int) -> None:
        self._owner.gave_up(self._log, error, now_ms)
