"""LogPosition and FileSlice: the position of a record, and the bytes that a read returns."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.disk.files import File
from tailrace.model.ids import Offset


class LogPosition(NamedTuple):
    """An offset with its segment and the byte position of its batch."""

    offset: Offset
    segment_base_offset: Offset = -1
    position: int = -1

    @property
    def is_offset_only(self) -> bool:
        """Return True if segment and byte position are not known yet."""
        return self.segment_base_offset < 0


class FileSlice:
    """A range of a segment's file, to be sent or read later. It keeps the file open. Its length is its size, so that it
    can be one of the buffers of a response."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileSlice) and (self.file, self.position, self.size) == (
            other.file,
            other.position,
            other.size,
        )

    __hash__ = None  # type: ignore[assignment]

    def read(self) -> bytes:
        return self.file.read(self.position, self.size)

    def __repr__(self) -> str:
        return f"FileSlice({self.file.path}, {self.size} B at {self.position})"
