"""EpochWrites: writes `leader-epoch-checkpoint` of many logs on another thread.

A broker that becomes leader of thousands of partitions records an epoch in each. The epoch is valid at once. The file
may be written later, because recovery finds the epochs in the records. Recovery does not read records before the
recovery point, though. The recovery point of a log therefore does not move until the file has its epochs
(`Durability.note_flushed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from tailrace.log.disk.files import Files
from tailrace.log.leader_epochs import LeaderEpochs, write_epochs


class EpochWrites:
    def __init__(
        self, files: Files, unwritten: Iterable[LeaderEpochs], on_failure: Callable[[OSError], object]
    ) -> None:
        self._files = files
        self._on_failure = on_failure
        self._wanted = [(epochs, epochs.path, tuple(epochs.entries)) for epochs in unwritten]

    def run(self) -> list[bool]:
        """Write the files. Return True for each that was written. A folder that was renamed meanwhile has no file. This
        may run on any thread."""
        return [self._write(path, entries) for _, path, entries in self._wanted]

    def _write(self, path: str, entries: tuple[tuple[int, int], ...]) -> bool:
        with suppress(FileNotFoundError):
            write_epochs(self._files, path, entries)
            return True
        return False

    def apply(self, is_written: list[bool], now_ms: int) -> None:
        for (epochs, path, entries), done in zip(self._wanted, is_written, strict=True):
            if epochs.path != path or not done:
                epochs.changed()
            elif tuple(epochs.entries) == entries:
                epochs.note_written()

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
