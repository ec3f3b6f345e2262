"""Throughput: how large offsets and files are, measured in each round, to size the next one."""

from __future__ import annotations

_FIRST_BYTES = 1024  # of an offset, before the first measurement
_FIRST_OFFSETS = 100_000  # of a round before the first measurement, because the records may be large
_FIRST_RATIO = 4.0  # decoded bytes to Parquet bytes
_LEAST_TASK_BYTES = 32 * 1024 * 1024  # of decoded records; smaller tasks cost more than they gain


class Throughput:
    def __init__(self) -> None:
        self._bytes_per_offset = float(_FIRST_BYTES)
        self._ratio = _FIRST_RATIO
        self._is_measured = False

    def note(self, offsets: int, source_bytes: int, file_bytes: int) -> None:
        if offsets and source_bytes:
            self._is_measured = True
            self._bytes_per_offset = max(1.0, source_bytes / offsets)
        if file_bytes:
            self._ratio = min(50.0, max(1.0, source_bytes / file_bytes))

    def round_offsets(self, source_bytes: int) -> int:
        """Return the maximum number of offsets of a round with this size of decoded records."""
        found = self.offsets(source_bytes)
        return found if self._is_measured else min(found, _FIRST_OFFSETS)

    def offsets(self, source_bytes: int) -> int:
        """Return the number of offsets with this size of decoded records."""
        return max(1, int(source_bytes / self._bytes_per_offset))

    def file_bytes(self, offsets: int) -> float:
        """Return the size of the Parquet files of this number of offsets."""
        return offsets * self._bytes_per_offset / self._ratio

    def task_bytes(self, target_bytes: int) -> int:
        """Return the decoded bytes that fill one file."""
        return max(1, int(target_bytes * self._ratio))

    def task_offsets(self, target_bytes: int, total: int, parallelism: int) -> int:
        """Return the offsets of a task: those of one file, or fewer if that keeps more cores busy."""
        share = max(-(-total // max(1, parallelism)), self.offsets(_LEAST_TASK_BYTES))
        return max(1, min(self.offsets(self.task_bytes(target_bytes)), share))
