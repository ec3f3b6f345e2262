"""SealedFlush and LogFlush: make a log durable on another thread, because that may take seconds.

A roll leaves segments to be synced. `run` opens their files again and syncs them on any thread. `apply` runs on the
thread that changes the log, and moves the recovery point if the synced segments are still part of the log. After a
crash before that, recovery starts at the old recovery point.

A log has one SealedFlush at a time, of a bounded number of segments. The next one starts where it ends
(`directory_work.py`). So the work and the memory grow with the number of segments, however fast a log rolls.

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

SEGMENTS_AT_ONCE = 50


def _sync(files: Files, paths: Iterable[str], folder: str) -> None:
    """Sync files, and then their names. A missing or renamed file needs no sync, because its segment is being removed.
    A missing folder is that of a deleted log.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            file = files.open(path)
            try:
                file.sync()
            finally:
                file.close()
    with suppress(FileNotFoundError):
        files.sync_directory(folder)


def _files_of(segment: Segment) -> list[str]:
    indexes = segment.offset_index.file.path, segment.time_index.file.path, segment.transaction_index.path
    return [segment.log.path, *indexes]


class SealedFlush:
    def __init__(
        self,
        files: Files,
        log: PartitionLog,
        start: Offset,
        done: Callable[[PartitionLog, Offset], object],
        failed: Callable[[PartitionLog, OSError], object],
    ) -> None:
        """Flush the first sealed segments from offset `start` on, below which everything is synced.

        `done(log, end)` is called when everything below `end` is synced.
        """
        self._files = files
        self._log = log
        self._done = done
        self._failed = failed
        self._paths = log.producers.take_unsynced()
        segments = log.segments.between(start, log.segments.active.base_offset)[:SEGMENTS_AT_ONCE]
        for segment in segments:
            self._paths += _files_of(segment)
        self._folder, self._names = log.directory, log.durability.names
        self._following = log.segments.after(segments[-1].base_offset)[0]

    def run(self) -> None:
        """Sync the files. This may run on any thread."""
        _sync(self._files, self._paths, self._folder)

    def apply(self, result: None, now_ms: int) -> None:
        log, end = self._log, self._following.base_offset
        log.durability.note_names_synced(self._names)
        # A truncation below it would have removed that segment, and the next roll would have created another one.
        if log.segments.get(end) is self._following:
            log.durability.note_flushed(end, now_ms)
            self._done(log, end)
        else:
            self._done(log, log.recovery_point)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._failed(self._log, error)


class LogFlush:
    def __init__(self, files: Files, log: PartitionLog, end: Offset, on_failure: Callable[[OSError], object]) -> None:
        """Flush everything below `end`."""
        self._files = files
        self._log = log
        self._end = min(end, log.log_end_offset)
        self._cuts = log.cuts
        self._folder, self._names = log.directory, log.durability.names
        self._on_failure = on_failure
        self._paths: list[str] = []
        for segment in log.segments.between(log.recovery_point, self._end):
            self._paths += [segment.log.path] if segment is log.segments.active else _files_of(segment)

    def run(self) -> None:
        """Sync the files. This may run on any thread."""
        _sync(self._files, self._paths, self._folder)

    def apply(self, result: None, now_ms: int) -> None:
        self._log.durability.note_names_synced(self._names)
        # After a truncation, other records may be where the synced ones were.
        if self._log.cuts == self._cuts:
            self._log.durability.note_flushed(self._end, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
