"""TimedFiles: the operating system's files, with a note of how long each flush of a log took.

The log knows no clock, so it is the files that look at one. Only segments are counted, as in Kafka's LogFlushStats, not
their indexes nor checkpoints; and those of the loop's thread alone, since the cleaner's have other names.
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
