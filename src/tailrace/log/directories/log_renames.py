"""LogRenames: renames the folders of deleted logs as background work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.log.partition_log import PartitionLog

RENAMED_AT_ONCE = 100  # folders that are renamed without a pause


class LogRenames:
    def __init__(
        self,
        wanted: Sequence[tuple[PartitionLog, str]],
        renamed: Callable[[PartitionLog, int], None],
        on_failure: Callable[[OSError], object],
    ) -> None:
        """`wanted` has the logs with their new names. `renamed` is called for each log afterwards."""
        self._wanted = wanted
        self._renamed = renamed
        self._on_failure = on_failure

    def run(self) -> None:
        """Rename the folders. This may run on any thread."""
        for log, name in self._wanted:
            if not log.directory.endswith(name):  # it may be renamed already, if this work is repeated
                log.rename_folder(name)

    def apply(self, result: None, now_ms: int) -> None:
        for log, _ in self._wanted:
            self._renamed(log, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
