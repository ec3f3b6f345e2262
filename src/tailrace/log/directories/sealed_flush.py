"""SealedFlush and LogFlush: make a log durable on another thread, because that may take seconds.

A roll leaves segments to be synced. `run` opens their files again and syncs them on any thread. `apply` runs on the
thread that changes the log, and moves the recovery point if the synced segments are still part of the log. After a
crash before that, recovery starts at the old recovery point. Each flush starts at the recovery point, so the order of
two flushes does not matter.

A LogFlush syncs up to any offset, also in the active segment, for flush.ms and DeleteRecords, which need not wait. The
indexes of the active segment are left out. They are in memory, and are rebuilt after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset


def _sync(files: Files, paths: Iterable[str]) -> None:
    """Sync files. A file that is missing or renamed needs no sync, because its segment is being removed."""
    for path in paths:
        with suppress(FileNotFoundError):
            file = files.open(path)
            try:
                file.sync()
            finally:
                file.close()


def _files_of(segment: Segment) -> list[str]:
    indexes = segment.offset_index.file.path, segment.time_index.file.path, segment.transaction_index.path
    return [segment.log.path, *indexes]


class SealedFlush:
    def __init__(
        self, files: Files, log: PartitionLog, following: Segment, on_failure: Callable[[OSError], object]
    ) -> None:
        """Flush everything before `following`, the segment that a roll has created."""
        self._files = files
        self._log = log
        self._following = following
        self._on_failure = on_failure
        self._paths = log.producers.take_unsynced()
        for segment in log.segments.between(log.recovery_point, following.base_offset):
            self._paths += _files_of(segment)

    def run(self) -> None:
        """Sync the files. This may run on any thread."""
        _sync(self._files, self._paths)

    def apply(self, result: None, now_ms: int) -> None:
        end = self._following.base_offset
        # A truncation below it would have removed that segment, and the next roll would have created another one.
        if self._log.segments.get(end) is self._following:
            self._log.durability.note_flushed(end, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)


class LogFlush:
    def __init__(self, files: Files, log: PartitionLog, end: Offset, on_failure: Callable[[OSError], object]) -> None:
        """Flush everything below `end`."""
        self._files = files
        self._log = log
        self._end = min(end, log.log_end_offset)
        self._cuts = log.cuts
        self._on_failure = on_failure
        self._paths: list[str] = []
        for segment in log.segments.between(log.recovery_point, self._end):
            self._paths += [segment.log.path] if segment is log.segments.active else _files_of(segment)

    def run(self) -> None:
        """Sync the files. This may run on any thread."""
        _sync(self._files, self._paths)

    def apply(self, result: None, now_ms: int) -> None:
        # After a truncation, other records may be where the synced ones were.
        if self._log.cuts == self._cuts:
            self._log.durability.note_flushed(self._end, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
