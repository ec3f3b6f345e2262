"""Housekeeping: periodic work on the logs.

    log.retention.check.interval.ms               retention, and the expiry of producers
    log.flush.scheduler.interval.ms               flush.ms
    log.flush.offset.checkpoint.interval.ms       recovery points, log starts
    replica.high.watermark.checkpoint.interval.ms high watermarks
    every two seconds                             segments that a load job has built, unflushed ends of compacted logs
    at every tick                                 deferred work of the logs: files to delete, segments to flush

The periodic work pauses when the turn is over, and continues at the next tick, because a directory may have many logs
and a log many segments. A directory whose disk fails meanwhile is taken offline. The work on the other directories
continues.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tailrace.broker.storage.disk_failures import DiskFailures
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.waiting.purgatory import Purgatory

LOADS_INTERVAL_MS = 2_000
FLUSH_AHEAD_INTERVAL_MS = 2_000
FLUSH_AHEAD_RECORDS = 1_000
DEFERRED_AT_ONCE = 50  # actions in each tick, such as the removal of a few segments
SYNC_WAIT_MS = 10  # the time until retention looks again if a removal is durable


@dataclass(slots=True)
class _PeriodicTask:
    """Work that is done in each directory once per interval."""

    interval_ms: int
    run: Callable[[LogDirectory, int], Steps[None]]
    due_ms: int = 0


class _Running(NamedTuple):
    """Periodic work that has not ended."""

    task: _PeriodicTask
    directory: LogDirectory
    steps: Steps[None]


class Intervals(NamedTuple):
    """The intervals of the housekeeping's tasks."""

    retention_ms: int
    flush_ms: int
    checkpoint_ms: int
    high_watermark_ms: int


class Housekeeping:
    def __init__(
        self,
        logs: LogDirectories,
        purgatory: Purgatory,
        failures: DiskFailures,
        intervals: Intervals,
        *,
        take_loads: Callable[[LogDirectory, int], None] | None = None,
        now_ms: int,
        is_turn_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_turn_over()` returns True if the loop should do other work now."""
        self._logs = logs
        self._purgatory = purgatory
        self._failures = failures
        self._noted: dict[str, dict[TopicPartition, Offset]] = {}  # by directory: high watermarks as last written
        self._tasks = [
            _PeriodicTask(interval_ms, work, now_ms + interval_ms)
            for interval_ms, work in (
                (intervals.retention_ms, self._apply_retention),
                (intervals.flush_ms, self._flush_due),
                (intervals.checkpoint_ms, self._checkpoint),
                (intervals.high_watermark_ms, self._note_high_watermarks),
                (FLUSH_AHEAD_INTERVAL_MS, self._flush_ahead),
            )
        ]
        if take_loads is not None:
            self._tasks.append(_PeriodicTask(LOADS_INTERVAL_MS, _at_once(take_loads), now_ms + LOADS_INTERVAL_MS))
        self._is_turn_over = is_turn_over
        self._running: deque[_Running] = deque()
        self._waiting = 0  # running work that waits for syncs on another thread
        self._now_ms = now_ms
        self._is_behind = False  # True if there is more deferred work than a tick does
        self._due_ms = min(task.due_ms for task in self._tasks)

    def tick(self, now_ms: int) -> None:
        self._is_behind, self._now_ms = False, now_ms
        for directory in self._logs.online:
            try:
                self._is_behind |= directory.run_due(now_ms, DEFERRED_AT_ONCE) >= DEFERRED_AT_ONCE
            except OSError as error:
                self._failures.directory_failed(directory, error)
        for task in self._tasks:
            if task.due_ms <= now_ms:
                task.due_ms = now_ms + task.interval_ms
                self._begin(task, now_ms)
        self._due_ms = min(task.due_ms for task in self._tasks)
        self._resume(now_ms)
        self._failures.tick(now_ms)

    def next_deadline_ms(self) -> int:
        if len(self._running) > self._waiting or self._is_behind or self._failures.is_due:
            return 0
        return min(self._due_ms, self._now_ms + SYNC_WAIT_MS) if self._running else self._due_ms

    def _begin(self, task: _PeriodicTask, now_ms: int) -> None:
        if any(running.task is task for running in self._running):
            return  # it takes longer than its interval
        for directory in self._logs.online:
            self._running.append(_Running(task, directory, task.run(directory, now_ms)))

    def _resume(self, now_ms: int) -> None:
        """Continue the work in turns: one step at least, and more until the turn is over or all of it waits."""
        while self._running:
            running = self._running.popleft()
            try:
                if running.directory.failure is None:
                    next(running.steps)
                    self._running.append(running)
            except StopIteration:
                pass
            except OSError as error:
                self._failures.directory_failed(running.directory, error)
            if self._is_turn_over() or self._waiting == len(self._running):
                return

    def _apply_retention(self, directory: LogDirectory, now_ms: int) -> Steps[None]:
        """Delete segments of each log, one at a time. Other logs follow while the removal becomes durable."""
        unfinished: deque[PartitionLog] = deque()
        for key in list(directory.logs):
            log = directory.logs.get(key)
            if log is None:
                continue  # it was deleted during a pause
            yield from log.producers.expire(now_ms)
            if self._delete_segment(directory, log, now_ms):
                unfinished.append(log)
            yield
        while unfinished:
            are_all_syncing = True
            for _ in range(len(unfinished)):
                log = unfinished.popleft()
                are_all_syncing &= log.is_removing
                if self._delete_segment(directory, log, now_ms):
                    unfinished.append(log)
                yield
            if are_all_syncing:
                yield from self._wait()

    def _delete_segment(self, directory: LogDirectory, log: PartitionLog, now_ms: int) -> bool:
        """Delete a segment, if retention takes one. Return True if the log may have more of them."""
        if directory.logs.get(log.partition) is not log:
            return False
        if any(log.delete_old_segments(now_ms, 1).values()):
            self._purgatory.check(log.partition, now_ms)
            return True
        return log.is_removing

    def _wait(self) -> Steps[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def _flush_due(self, directory: LogDirectory, now_ms: int) -> Steps[None]:
        for number, log in enumerate(list(directory.logs.values())):
            if directory.logs.get(log.partition) is log:
                log.flush_if_due(now_ms)
            if number % ITEMS_PER_STEP == ITEMS_PER_STEP - 1:
                yield

    def _flush_ahead(self, directory: LogDirectory, now_ms: int) -> Steps[None]:
        """Flush the ends of compacted logs on another thread, because a roll of such a log flushes the rest at once."""
        for number, log in enumerate(list(directory.logs.values())):
            if (
                log.config.is_compacted
                and log.log_end_offset - log.recovery_point >= FLUSH_AHEAD_RECORDS
                and directory.logs.get(log.partition) is log
            ):
                log.flush_soon(log.log_end_offset, now_ms)
            if number % ITEMS_PER_STEP == ITEMS_PER_STEP - 1:
                yield

    def _checkpoint(self, directory: LogDirectory, now_ms: int) -> Steps[None]:
        directory.checkpoint_soon(now_ms)
        yield

    def _note_high_watermarks(self, directory: LogDirectory, now_ms: int) -> Steps[None]:
        offsets = {}
        for number, log in enumerate(list(directory.logs.values())):
            if directory.logs.get(log.partition) is log:
                offsets[log.partition] = log.high_watermark
            if number % ITEMS_PER_STEP == ITEMS_PER_STEP - 1:
                yield
        if offsets != self._noted.get(directory.path):
            directory.checkpoint_high_watermarks_soon(offsets, now_ms)
            self._noted[directory.path] = offsets


def _at_once(work: Callable[[LogDirectory, int], None]) -> Callable[[LogDirectory, int], Steps[None]]:
    """Return short work as steps."""

    def run(directory: LogDirectory, now_ms: int) -> Steps[None]:
        work(directory, now_ms)
        yield

    return run
