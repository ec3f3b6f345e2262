"""Housekeeping: what has to be done now and then, whether or not a client asks.

log.retention.check.interval.ms               retention, and the expiry of producers
log.flush.scheduler.interval.ms               flush.ms
log.flush.offset.checkpoint.interval.ms       recovery points, log starts
replica.high.watermark.checkpoint.interval.ms high watermarks
every two seconds                             segments that a load has built beside us
at every tick                                 what logs put off: files to remove, segments to flush

A directory whose disk fails on the way is taken out of use; the others get their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.broker.storage.disk_failures import DiskFailures
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.model.ids import Offset, TopicPartition
from tailrace.waiting.purgatory import Purgatory

LOADS_INTERVAL_MS = 2_000


@dataclass(slots=True)
class _Chore:
    interval_ms: int
    run: Callable[[LogDirectory, int], None]
    due_ms: int = 0


class Housekeeping:
    def __init__(
        self,
        logs: LogDirectories,
        purgatory: Purgatory,
        failures: DiskFailures,
        *,
        retention_interval_ms: int,
        flush_interval_ms: int,
        checkpoint_interval_ms: int,
        high_watermark_interval_ms: int,
        take_loads: Callable[[LogDirectory, int], None] | None = None,
        now_ms: int,
    ) -> None:
        self._logs = logs
        self._purgatory = purgatory
        self._failures = failures
        self._noted: dict[str, dict[TopicPartition, Offset]] = {}  # high watermarks, by directory
        self._chores = [
            _Chore(retention_interval_ms, self._apply_retention, now_ms + retention_interval_ms),
            _Chore(flush_interval_ms, self._flush_due, now_ms + flush_interval_ms),
            _Chore(checkpoint_interval_ms, self._checkpoint, now_ms + checkpoint_interval_ms),
            _Chore(high_watermark_interval_ms, self._note_high_watermarks, now_ms + high_watermark_interval_ms),
        ]
        if take_loads is not None:
            self._chores.append(_Chore(LOADS_INTERVAL_MS, take_loads, now_ms + LOADS_INTERVAL_MS))
        self._due_ms = min(chore.due_ms for chore in self._chores)

    def tick(self, now_ms: int) -> None:
        self._in_each(LogDirectory.run_due, now_ms)
        for chore in self._chores:
            if chore.due_ms <= now_ms:
                chore.due_ms = now_ms + chore.interval_ms
                self._in_each(chore.run, now_ms)
        self._due_ms = min(chore.due_ms for chore in self._chores)
        self._failures.tick(now_ms)

    def next_deadline_ms(self) -> int:
        return 0 if self._failures.is_due else self._due_ms

    def _in_each(self, work: Callable[[LogDirectory, int], object], now_ms: int) -> None:
        for directory in self._logs.online:
            try:
                work(directory, now_ms)
            except OSError as error:
                self._failures.directory_failed(directory, error)

    def _apply_retention(self, directory: LogDirectory, now_ms: int) -> None:
        for key, log in list(directory.logs.items()):
            log.producers.remove_expired(now_ms)
            if any(log.delete_old_segments(now_ms).values()):
                self._purgatory.check(key, now_ms)

    def _flush_due(self, directory: LogDirectory, now_ms: int) -> None:
        for log in directory.logs.values():
            log.flush_if_due(now_ms)

    def _checkpoint(self, directory: LogDirectory, now_ms: int) -> None:
        directory.checkpoint_soon(now_ms)

    def _note_high_watermarks(self, directory: LogDirectory, now_ms: int) -> None:
        offsets = {key: log.high_watermark for key, log in directory.logs.items()}
        if offsets != self._noted.get(directory.path):
            directory.note_high_watermarks(offsets, now_ms)
            self._noted[directory.path] = offsets
