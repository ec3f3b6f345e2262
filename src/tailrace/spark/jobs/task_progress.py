"""Progress of a job's tasks: a line on standard error, if that is a terminal."""

from __future__ import annotations

import shutil
import sys
import threading
from types import TracebackType
from typing import Any, TextIO

_WIDTH = 28
_INTERVAL_S = 0.2


class TaskProgress:
    """A context manager that shows the running stages. Without a SparkContext (Spark Connect) it shows nothing."""

    def __init__(self, spark: Any, label: str, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._label = label
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._tracker: Any = None
        if self._stream.isatty():
            try:
                self._tracker = spark.sparkContext.statusTracker()
            except Exception:  # Spark Connect has no SparkContext and raises its own exception
                self._tracker = None

    def __enter__(self) -> TaskProgress:
        if self._tracker is not None:
            self._thread = threading.Thread(target=self._watch, name="job progress", daemon=True)
            self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self.draw()

    def draw(self) -> None:
        """Draw the progress of the running stages."""
        done = total = running = 0
        stages = self._tracker.getActiveStageIds()
        for stage in stages:
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                done += info.numCompletedTasks
                total += info.numTasks
                running += info.numActiveTasks
        if not total:
            return
        bar = ("█" * int(done / total * _WIDTH)).ljust(_WIDTH, "░")
        line = f"{bar} {done / total:4.0%}  {done:,} of {total:,} tasks, {running} running  {self._label}"
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[K{line[:width]}")
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._stream.write("\r\x1b[K")
            self._stream.flush()
