"""CleanerCheckpoint: `cleaner-offset-checkpoint`, the offset up to which each log of a directory is compacted.

The file is only a hint. Without it every log is cleaned again from its start. An offset outside its log is corrected.
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
        """Store the offset up to which a log is clean. Partitions that are not in `known` are dropped."""
        offsets = {key: value for key, value in self.read().items() if key in known}
        offsets[partition] = offset
        write_offsets(self._files, self.path, offsets)

    def remove(self, partition: TopicPartition) -> None:
        offsets = self.read()
        if offsets.pop(partition, None) is not None:
            write_offsets(self._files, self.path, offsets)

    def truncate(self, partition: TopicPartition, offset: Offset) -> None:
        """Lower the offset of a log that was truncated, because new records there are dirty."""
        offsets = self.read()
        if offsets.get(partition, 0) > offset:
            offsets[partition] = offset
            write_offsets(self._files, self.path, offsets)
