"""EpochWrites: `leader-epoch-checkpoint` of many logs, written beside the thread that changes them.

Whoever takes over thousands of partitions notes an epoch in each. It counts at once; the file may follow, since a crash
finds the epochs again in the records. Not so in records that recovery does not read: a log's recovery point stays where
it is until the file has its epochs (`Durability.note_flushed`).
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
        """On any thread; which ones are written. A folder that was renamed on the way is not there."""
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
