"""TimedFiles: files of the operating system that measure the flush times of logs.

The log has no clock, so the files measure the time. As in Kafka's LogFlushStats, only flushes of segments count, not
those of indexes and checkpoints. Segments that the cleaner writes have other names and are not counted.
"""

from __future__ import annotations

import time
from typing import Final

from tailrace.log.disk.files import DiskFile, DiskFiles
from tailrace.metrics.histogram import Histogram

SEGMENT: Final = ".log"


class TimedFile(DiskFile):
    __slots__ = ("_flushes",)

    def __init__(self, path: str, flags: int, flushes: Histogram) -> None:
        super().__init__(path, flags)
        self._flushes = flushes

    def sync(self) -> None:
        began_ns = time.perf_counter_ns()
        super().sync()
        self._flushes.add(time.perf_counter_ns() - began_ns)


class TimedFiles(DiskFiles):
    def __init__(self) -> None:
        self.flushes = Histogram()

    def _new_file(self, path: str, flags: int) -> DiskFile:
        return TimedFile(path, flags, self.flushes) if path.endswith(SEGMENT) else DiskFile(path, flags)
