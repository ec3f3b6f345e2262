"""SealedFlush: making sealed segments durable, which may take seconds, beside the thread that changes the log.

A roll leaves segments to be synced. `run` opens their files anew and syncs them, wherever it is called; `apply`, where
the log is changed, moves the recovery point if what was synced is still what the log consists of. Until then a crash
finds the old recovery point and recovers from there. Each flush starts at the recovery point, so it does not matter
which of two is done first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tailrace.log.files import Files

if TYPE_CHECKING:
    from tailrace.log.partition_log import PartitionLog
    from tailrace.log.segment import Segment


def flush_at_once(log: PartitionLog, following: Segment, now_ms: int) -> None:
    """Where nobody else can do it: sync what lies before a segment, here and now."""
    log.producers.sync_snapshots()
    log.flush_to(following.base_offset, now_ms)


class SealedFlush:
    def __init__(
        self, files: Files, log: PartitionLog, following: Segment, on_failure: Callable[[OSError], None]
    ) -> None:
        """Of everything before `following`, the segment that a roll has begun."""
        self._files = files
        self._log = log
        self._following = following
        self._on_failure = on_failure
        self._paths = log.producers.take_unsynced()
        for segment in log.segments.between(log.recovery_point, following.base_offset):
            indexes = segment.offset_index.file.path, segment.time_index.file.path, segment.transaction_index.path
            self._paths += [segment.log.path, *indexes]

    def run(self) -> None:
        """On any thread. A file that is gone, or under another name, needs no sync: its segment is on its way out."""
        for path in self._paths:
            with suppress(FileNotFoundError):
                file = self._files.open(path)
                try:
                    file.sync()
                finally:
                    file.close()

    def apply(self, result: None, now_ms: int) -> None:
        end = self._following.base_offset
        # A truncation below it would have taken that segment away, and another one would be there after the next roll.
        if self._log.segments.get(end) is self._following:
            self._log.note_flushed(end, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
