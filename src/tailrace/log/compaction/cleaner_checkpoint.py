"""CleanerCheckpoint: `cleaner-offset-checkpoint`, up to where each log of a directory is compacted.

It is a hint: without it everything is cleaned once more, and one that points outside its log is put right.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from tailrace.log.disk.files import Files, join
from tailrace.model.ids import Offset, TopicPartition

_log = logging.getLogger(__name__)


class CleanerCheckpoint:
    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.path = join(directory, file_names.CLEANER_CHECKPOINT)

    def read(self) -> dict[TopicPartition, Offset]:
        try:
            return read_offsets(self._files, self.path)
        except CorruptCheckpoint as error:
            _log.warning("checkpoint ignored, the logs are cleaned from their start: %s", error)
            return {}

    def update(self, partition: TopicPartition, offset: Offset, known: Collection[TopicPartition]) -> None:
        """Note how far a log is clean; partitions that are not `known` here any more are dropped."""
        offsets = {key: value for key, value in self.read().items() if key in known}
        offsets[partition] = offset
        write_offsets(self._files, self.path, offsets)

    def remove(self, partition: TopicPartition) -> None:
        offsets = self.read()
        if offsets.pop(partition, None) is not None:
            write_offsets(self._files, self.path, offsets)

    def truncate(self, partition: TopicPartition, offset: Offset) -> None:
        """The log was truncated: what is appended there now is dirty."""
        offsets = self.read()
        if offsets.get(partition, 0) > offset:
            offsets[partition] = offset
            write_offsets(self._files, self.path, offsets)
