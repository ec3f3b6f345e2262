"""Progress of a job's tasks: a bar on a terminal. For a log file a command can have a line every ten seconds.

with progress_lines(write):
    verify(spark, …)
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO

_WIDTH = 28
_INTERVAL_S = 0.2
LINE_INTERVAL_S = 10.0
_line_writer: ContextVar[Callable[[str], None] | None] = ContextVar("line_writer", default=None)


@contextmanager
def progress_lines(write: Callable[[str], None]) -> Iterator[None]:
    """Let jobs in this context write lines of progress where standard error is not a terminal."""
    token = _line_writer.set(write)
    try:
        yield
    finally:
        _line_writer.reset(token)


class TaskProgress:
    """A context manager that shows the running stages. Without a SparkContext (Spark Connect) it shows nothing."""

    def __init__(self, spark: Any, label: str, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._label = label
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._tracker: Any = None
        self._write_line = None if self._stream.isatty() else _line_writer.get()
        self._is_drawn = self._stream.isatty()
        if self._is_drawn or self._write_line is not None:
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
        while not self._ended.wait(_INTERVAL_S if self._is_drawn else LINE_INTERVAL_S):
            self.draw()

    def draw(self) -> None:
        """Show the progress of the running stages."""
        done, total, running = self._counts()
        if not total:
            return
        if self._write_line is not None:
            share, seconds = done / total, time.monotonic() - self._began
            self._write_line(
                f"{self._label}: {done:,} of {total:,} tasks ({share:.0%}), {running} running, {seconds:.0f} s"
            )
            return
        bar = ("█" * int(done / total * _WIDTH)).ljust(_WIDTH, "░")
        line = f"{bar} {done / total:4.0%}  {done:,} of {total:,} tasks, {running} running  {self._label}"
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[K{line[:width]}")
        self._stream.flush()

    def _counts(self) -> tuple[int, int, int]:
        """Return the numbers of finished, of all, and of running tasks in the running stages."""
        done = total = running = 0
        stages = self._tracker.getActiveStageIds()
        for stage in stages:
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                done += info.numCompletedTasks
                total += info.numTasks
                running += info.numActiveTasks
        return done, total, running

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            if self._is_drawn:
                self._stream.write("\r\x1b[K")
                self._stream.flush()
