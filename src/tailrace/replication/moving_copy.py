"""MovingCopy: the copy of a partition's log in another log directory, and its progress.

`directory_move.py` fills the copy. While one of its steps runs, only that step touches the copy's log, so the offsets
and the size here are those after the last finished step.
"""

from __future__ import annotations

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import Offset


class MovingCopy:
    def __init__(self, log: PartitionLog, copy: PartitionLog, target: LogDirectory) -> None:
        self._log = log
        self.copy = copy
        self.target = target
        self.note_ended()

    def note_ended(self) -> None:
        """Note the offsets and the size of the copy's log, which no step is changing."""
        self.log_end_offset: Offset = self.copy.log_end_offset
        self.log_start_offset: Offset = self.copy.log_start_offset
        self.size = self.copy.size

    @property
    def lag(self) -> int:
        """Return the number of offsets that the copy lacks."""
        return self._log.log_end_offset - self.log_end_offset
