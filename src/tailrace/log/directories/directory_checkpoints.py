"""DirectoryCheckpoints: the files of a log directory that have an offset for each of its partitions.

The thread that changes the logs writes them if it has to wait until they are durable. Otherwise `CheckpointWrites`
writes them on another thread, to a temporary file. That file replaces the checkpoint only if no other write has
happened since, so that a lowered offset is never raised again by an older write.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tailrace.log.disk.checkpoints import CorruptCheckpoint, encode_offsets, read_offsets, write_offsets
from tailrace.log.disk.files import Files, join
from tailrace.model.ids import Offset, TopicPartition

_log = logging.getLogger(__name__)
_PREPARED = ".prepared"


class DirectoryCheckpoints:
    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._read: dict[str, dict[TopicPartition, Offset]] = {}  # as it was read at the start
        self._kept: dict[str, dict[TopicPartition, Offset]] = {}  # offsets of logs that could not be opened
        self._written: Counter[str] = Counter()  # number of writes by this thread

    def read(self, name: str) -> dict[TopicPartition, Offset] | None:
        """Read a checkpoint. Return None if it is missing or cannot be read."""
        path = join(self._path, name)
        try:
            found = read_offsets(self._files, path) if self._files.exists(path) else None
        except CorruptCheckpoint as error:
            # Logs are then scanned from their start and served from their first segment.
            _log.warning("checkpoint ignored: %s", error)
            self._files.replace(path, path + ".broken")
            found = None
        self._read[name] = found or {}
        return found

    def keep(self, partition: TopicPartition) -> None:
        """Keep the offsets of a log that could not be opened."""
        for name, offsets in self._read.items():
            if partition in offsets:
                self._kept.setdefault(name, {})[partition] = offsets[partition]

    def loaded(self) -> None:
        """Drop the offsets that were read, because all logs are loaded."""
        self._read.clear()

    def write(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        self._written[name] += 1
        write_offsets(self._files, join(self._path, name), self._all(name, offsets))

    def _all(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        return {**self._kept.get(name, {}), **offsets}

    def prepare(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """Prepare a write on another thread."""
        return CheckpointWrite(join(self._path, name), self._all(name, offsets), name, self._written[name])

    def prepare_on_disk(self, write: CheckpointWrite) -> None:
        """Write the temporary file. This may run on any thread."""
        self._files.write(write.path + _PREPARED, encode_offsets(write.offsets), sync=True)

    def take_prepared(self, write: CheckpointWrite) -> None:
        """Rename the temporary file, unless the checkpoint was written meanwhile. The rename is not durable yet."""
        if self._written[write.name] == write.number:
            self._files.replace(write.path + _PREPARED, write.path)


class CheckpointWrite(NamedTuple):
    path: str
    offsets: dict[TopicPartition, Offset]
    name: str
    number: int


class CheckpointWrites:
    def __init__(
        self,
        checkpoints: DirectoryCheckpoints,
        offsets: Mapping[str, Mapping[TopicPartition, Offset]],
        on_failure: Callable[[OSError], object],
    ) -> None:
        """`offsets` has the offsets of each file, by the file's name."""
        self._checkpoints = checkpoints
        self._writes = [checkpoints.prepare(name, known) for name, known in offsets.items()]
        self._on_failure = on_failure

    def run(self) -> None:
        """Write the temporary files. This may run on any thread."""
        for write in self._writes:
            self._checkpoints.prepare_on_disk(write)

    def apply(self, result: None, now_ms: int) -> None:
        try:
            for write in self._writes:
                self._checkpoints.take_prepared(write)
        except OSError as error:
            self._on_failure(error)

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)
