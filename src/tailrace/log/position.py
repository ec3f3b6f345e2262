"""LogPosition and FileSlice: where a record is, and which bytes a read hands over."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.files import File
from tailrace.model.ids import Offset


class LogPosition(NamedTuple):
    """An offset and its place: the segment that holds it and the byte where its batch starts."""

    offset: Offset
    segment_base_offset: Offset = -1
    position: int = -1

    @property
    def is_offset_only(self) -> bool:
        """Known by number only; the place has yet to be looked up."""
        return self.segment_base_offset < 0


class FileSlice(NamedTuple):
    """A range of a segment's file, to be sent or read later; keeping it keeps the file open."""

    file: File
    position: int
    size: int

    def read(self) -> bytes:
        return self.file.read(self.position, self.size)
