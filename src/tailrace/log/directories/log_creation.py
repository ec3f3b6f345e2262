"""LogCreation: creates logs of one directory on another thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.new_logs import NewLog
from tailrace.log.partition_log import PartitionLog


class LogCreation:
    def __init__(
        self,
        directory: LogDirectory,
        wanted: Sequence[NewLog],
        now_ms: int,
        made: Callable[[Sequence[NewLog], int], None],
        failed: Callable[[LogDirectory, Sequence[NewLog], OSError, int], None],
    ) -> None:
        """`made` is called when the directory has the logs, `failed` if it could not create them. Until then they are
        `being_created`."""
        self._directory = directory
        self._wanted = wanted
        self._now_ms = now_ms
        self._made = made
        self._failed = failed

    def run(self) -> list[PartitionLog]:
        """Create the logs. This may run on any thread."""
        return self._directory.create_unregistered(self._wanted, self._now_ms)

    def apply(self, logs: list[PartitionLog], now_ms: int) -> None:
        directory = self._directory
        directory.add_being_created(-len(self._wanted))
        if directory.failure is not None:
            for log in logs:
                log.abandon()
            self._failed(directory, self._wanted, directory.failure, now_ms)
            return
        for log in logs:
            directory.add(log)
        self._made(self._wanted, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._directory.add_being_created(-len(self._wanted))
        self._failed(self._directory, self._wanted, error, now_ms)
