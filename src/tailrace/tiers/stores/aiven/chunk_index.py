"""ChunkIndex: a log is cut into chunks of one size, and each chunk is stored as it is, or compressed.

The sizes of compressed chunks are encoded in few bytes: a base, then the differences to it, then the last size as a
whole, all of it compressed with zstd and written as base64.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import zstandard

_CHUNKS_MAX: Final = 4_000_000  # of a log of 2 GB
_ENCODED_MAX: Final = 9 + 4 * _CHUNKS_MAX + 4


class WrongManifest(ValueError):
    """A manifest that cannot be used. The text has the reason."""


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The size of a log, of its chunks, and of the stored chunks; the latter is None if chunks are not changed."""

    chunk_size: int
    file_size: int
    stored_sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.chunk_size < 1 or not 0 <= self.file_size < 2**31:
            raise WrongManifest(f"a log of {self.file_size} bytes in chunks of {self.chunk_size} bytes is not possible")
        if self.stored_sizes is not None and len(self.stored_sizes) != self.chunk_count:
            raise WrongManifest(f"there are {len(self.stored_sizes)} chunk sizes for {self.chunk_count} chunks")

    @property
    def chunk_count(self) -> int:
        return -(-self.file_size // self.chunk_size)

    @property
    def stored_starts(self) -> list[int]:
        """The position of each stored chunk, and the end of the last one."""
        return [0, *accumulate(self.stored_sizes or ())]

    def original_size(self, chunk: int) -> int:
        return min(self.chunk_size, self.file_size - chunk * self.chunk_size)

    def as_json(self) -> dict[str, Any]:
        sizes = {"originalChunkSize": self.chunk_size, "originalFileSize": self.file_size}
        if self.stored_sizes is not None:
            packed = zstandard.ZstdCompressor().compress(encode_sizes(self.stored_sizes))
            return {"type": "variable", **sizes, "transformedChunks": base64.b64encode(packed).decode()}
        final = self.original_size(self.chunk_count - 1) if self.file_size else 0
        return {"type": "fixed", **sizes, "transformedChunkSize": self.chunk_size, "finalTransformedChunkSize": final}

    @classmethod
    def from_json(cls, found: Any) -> ChunkIndex:
        chunk_size, file_size = int(found["originalChunkSize"]), int(found["originalFileSize"])
        if found["type"] == "variable":
            packed = base64.b64decode(found["transformedChunks"], validate=True)
            return cls(chunk_size, file_size, decode_sizes(unpack(packed, _ENCODED_MAX)))
        if found["type"] != "fixed":
            raise WrongManifest(f"the chunk index has the unknown type {found['type']!r}")
        if found["transformedChunkSize"] != chunk_size:
            raise WrongManifest("its chunks are transformed, but have one size; this is not supported")
        return cls(chunk_size, file_size)


def unpack(data: bytes, most: int) -> bytes:
    """Decompress a zstd frame that has at most `most` bytes."""
    try:
        size = zstandard.frame_content_size(data)
        if size > most:
            raise WrongManifest(f"compressed data has {size:,} bytes; the limit is {most:,}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=most)
    except zstandard.ZstdError as error:
        raise WrongManifest(f"compressed data cannot be read: {error}") from None


def encode_sizes(sizes: tuple[int, ...]) -> bytes:
    if not sizes:
        return struct.pack(">i", 0)
    *first, last = sizes
    if not first:
        return struct.pack(">ii", 1, last)
    base = min(first)
    width = max(1, ((max(first) - base).bit_length() + 7) // 8)
    values = b"".join((one - base).to_bytes(width, "big") for one in first)
    return struct.pack(">iib", len(sizes), base, width) + values + struct.pack(">i", last)


def decode_sizes(data: bytes) -> tuple[int, ...]:
    try:
        (count,) = struct.unpack_from(">i", data)
        if count < 2:
            return struct.unpack_from(f">{max(count, 0)}i", data, 4)
        base, width = struct.unpack_from(">ib", data, 4)
        if count > _CHUNKS_MAX or not 0 <= width <= 4 or len(data) != 13 + (count - 1) * width:
            raise WrongManifest("the sizes of its chunks are malformed")
        starts = range(9, 9 + (count - 1) * width, width) if width else [9] * (count - 1)
        first = [base + int.from_bytes(data[start : start + width], "big") for start in starts]
        return (*first, *struct.unpack_from(">i", data, len(data) - 4))
    except struct.error:
        raise WrongManifest("the sizes of its chunks are malformed") from None
