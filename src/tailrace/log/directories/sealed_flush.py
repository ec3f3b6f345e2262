"""SealedFlush and LogFlush: making a log durable, which may take seconds, beside the thread that changes it.

A roll leaves segments to be synced. `run` opens their files anew and syncs them, wherever it is called; `apply`, where
the log is changed, moves the recovery point if what was synced is still what the log consists of. Until then a crash
finds the old recovery point and recovers from there. Each flush starts at the recovery point, so it does not matter
which of two is done first.

A LogFlush syncs up to any offset, in the active segment too, for who need not wait for it: flush.ms, DeleteRecords. The
active segment's indexes are left out; they are in memory, and rebuilt after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset


def _sync(files: Files, paths: Iterable[str]) -> None:
    """A file that is gone, or under another name, needs no sync: its segment is on its way out."""
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
        """Of everything before `following`, the segment that a roll has begun."""
        self._files = files
        self._log = log
        self._following = following
        self._on_failure = on_failure
        self._paths = log.producers.take_unsynced()
        for segment in log.segments.between(log.recovery_point, following.base_offset):
            self._paths += _files_of(segment)

    def run(self) -> None:
        """On any thread."""
        _sync(self._files, self._paths)

    def apply(self, result: None, now_ms: int) -> None:
        end = self._following.base_offset
        # A truncation below it would have taken that segment away, and another one would be there after the next roll.
        if self._log.segments.get(end) is self._following:
            self._log.durability.note_flushed(end, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)


class LogFlush:
    def __init__(self, files: Files, log: PartitionLog, end: Offset, on_failure: Callable[[OSError], object]) -> None:
        """Of everything below `end`."""
        self._files = files
        self._log = log
        self._end = min(end, log.log_end_offset)
        self._cuts = log.cuts
        self._on_failure = on_failure
        self._paths: list[str] = []
        for segment in log.segments.between(log.recovery_point, self._end):
            self._paths += [segment.log.path] if segment is log.segments.active else _files_of(segment)

    def run(self) -> None:
        """On any thread."""
        _sync(self._files, self._paths)

    def apply(self, result: None, now_ms: int) -> None:
        # After a cut other records may be where the synced ones were.
        if self._log.cuts == self._cuts:
            self._log.durability.note_flushed(self._end, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
