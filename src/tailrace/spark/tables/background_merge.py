"""BackgroundMerge: merges small files in a thread, so that the next rounds of a follower do not wait for a merge."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from tailrace.spark.tables.formats.table import Merged


class BackgroundMerge:
    """Runs at most one merge at a time. The error of a merge is raised by the next call."""

    def __init__(self, merge: Callable[[], Merged]) -> None:
        self._merge = merge
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self.merged = Merged()  # all merges that have ended

    def start(self) -> None:
        """Start a merge, if none is running."""
        if self._thread is not None and self._thread.is_alive():
            return
        self.wait()
        self._thread = Thread(target=self._run, name="merge of small files", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the running merge."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        try:
            found = self._merge()
            self.merged = Merged(
                self.merged.files_before + found.files_before, self.merged.files_after + found.files_after
            )
        except BaseException as error:  # the follower raises it
            self._error = error
