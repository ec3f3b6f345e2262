"""DirectoryCheckpoints: the files of a log directory that have an offset for each of its partitions.

They are written where the logs are changed, by whoever must not go on before it is durable; or by `CheckpointWrites`,
beside it. That one leaves a file which takes the other's place only if nothing was written since: an offset that was
lowered is never raised again by what was on its way.
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
        self._read: dict[str, dict[TopicPartition, Offset]] = {}  # as it was found
        self._kept: dict[str, dict[TopicPartition, Offset]] = {}  # of logs that did not open
        self._written: Counter[str] = Counter()  # how often, here

    def read(self, name: str) -> dict[TopicPartition, Offset] | None:
        """None if there is none that can be read."""
        path = join(self._path, name)
        try:
            found = read_offsets(self._files, path) if self._files.exists(path) else None
        except CorruptCheckpoint as error:
            # Logs are scanned from their start and served from their first segment; the next one overwrites nothing.
            _log.warning("checkpoint ignored: %s", error)
            self._files.replace(path, path + ".broken")
            found = None
        self._read[name] = found or {}
        return found

    def keep(self, partition: TopicPartition) -> None:
        """The log could not be opened: what is known of it stays as it was."""
        for name, offsets in self._read.items():
            if partition in offsets:
                self._kept.setdefault(name, {})[partition] = offsets[partition]

    def loaded(self) -> None:
        """All is read, and kept where it has to be."""
        self._read.clear()

    def write(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        self._written[name] += 1
        write_offsets(self._files, join(self._path, name), self._all(name, offsets))

    def _all(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        return {**self._kept.get(name, {}), **offsets}

    def prepare(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """The same, beside the thread that changes the logs."""
        return CheckpointWrite(join(self._path, name), self._all(name, offsets), name, self._written[name])

    def prepare_on_disk(self, write: CheckpointWrite) -> None:
        """On any thread."""
        self._files.write(write.path + _PREPARED, encode_offsets(write.offsets), sync=True)

    def take_prepared(self, write: CheckpointWrite) -> None:
        """It is the one that counts, unless another was written here meanwhile. Its name is not durable yet."""
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
        """`offsets`: those of each file, by its name."""
        self._checkpoints = checkpoints
        self._writes = [checkpoints.prepare(name, known) for name, known in offsets.items()]
        self._on_failure = on_failure

    def run(self) -> None:
        """On any thread."""
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
