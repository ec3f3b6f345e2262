"""Record batches that cost more to check than to send: bombs, empty frames, many records, many batches."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from functools import cache
from typing import Final

import zstandard

from tailrace.records.batch import CRC_POSITION, HEADER_SIZE, Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.codecs.crc32c import crc32c

_LENGTH_POSITION = 8
_LENGTH_END = 12
_ATTRIBUTES_POSITION = CRC_POSITION + 4
_COUNT_POSITION = HEADER_SIZE - 4
_NOW_MS = 1_700_000_000_000
GZIP_EMPTY = gzip.compress(b"", mtime=0)
ZSTD_EMPTY = zstandard.ZstdCompressor().compress(b"")
_LZ4_EMPTY = bytes.fromhex("04224d18604082") + bytes(4)


def _repeated(codec: Codec, piece: bytes) -> Callable[[int], bytes]:
    return lambda room: packed(codec, piece * (room // len(piece)), 1)


_MAKERS: Final[dict[str, Callable[[int], bytes]]] = {
    "a zstd bomb": lambda room: packed(Codec.ZSTD, zstandard.ZstdCompressor().compress(bytes(99_000_000)), 1),
    "a gzip bomb": lambda room: packed(Codec.GZIP, gzip.compress(bytes(90_000_000)), 1),
    "empty gzip members": _repeated(Codec.GZIP, GZIP_EMPTY),
    "empty zstd frames": _repeated(Codec.ZSTD, ZSTD_EMPTY),
    "empty lz4 frames": _repeated(Codec.LZ4, _LZ4_EMPTY),
    "tiny records": lambda room: _tiny_records(room, Codec.NONE),
    "tiny records in zstd": lambda room: _tiny_records(10 * room, Codec.ZSTD),
    "tiny records in gzip": lambda room: _tiny_records(6 * room, Codec.GZIP),
    "a record of many headers": lambda room: _many_headers(room),
}
HOSTILE: Final = tuple(_MAKERS)


@cache
def hostile_batch(name: str, size: int) -> bytes:
    """Return the batch of this name, of at most `size` bytes with the request around it."""
    return _MAKERS[name](size - 1_000)


def packed(codec: Codec, payload: bytes, count: int) -> bytes:
    """Return a batch with this compressed payload, whose header and checksum are right."""
    builder = BatchBuilder(codec=codec)
    builder.append(_NOW_MS, b"k", b"v")
    data = bytearray(builder.build()[:HEADER_SIZE]) + payload
    struct.pack_into(">i", data, _LENGTH_POSITION, len(data) - _LENGTH_END)
    struct.pack_into(">i", data, _COUNT_POSITION, count)
    struct.pack_into(">i", data, _ATTRIBUTES_POSITION + 2, count - 1)
    struct.pack_into(">I", data, CRC_POSITION, crc32c(memoryview(data)[_ATTRIBUTES_POSITION:]))
    return bytes(data)


def _tiny_records(size: int, codec: Codec) -> bytes:
    builder = BatchBuilder(codec=codec)
    for _ in range(size // 9):
        builder.append(_NOW_MS, None, b"")
    return builder.build()


def _many_headers(size: int) -> bytes:
    builder = BatchBuilder()
    builder.append(_NOW_MS, b"k", b"v", [("", b"")] * (size // 2))
    return builder.build()
