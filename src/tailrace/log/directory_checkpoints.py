"""DirectoryCheckpoints: the files of a log directory that have an offset for each of its partitions."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tailrace.log.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from tailrace.log.files import Files, join
from tailrace.model.ids import Offset, TopicPartition

_log = logging.getLogger(__name__)


class DirectoryCheckpoints:
    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._read: dict[str, dict[TopicPartition, Offset]] = {}  # as it was found
        self._kept: dict[str, dict[TopicPartition, Offset]] = {}  # of logs that did not open

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
        write_offsets(self._files, join(self._path, name), {**self._kept.get(name, {}), **offsets})
