"""Decoders of gzip, snappy, lz4 and zstd as Kafka reads them: linear in input and output, in pieces of bounded size.

`decompressed_pieces` yields the contents piece by piece, so that a single pass needs only one piece in
memory. `decompress` joins the pieces. The codec libraries release the interpreter lock while they decode a piece.

Kafka reads gzip of several members, snappy with and without framing, lz4 frames with content size and checksums, and
several zstd frames. So do these decoders.

A few bytes can decompress to gigabytes, so every decoder has a limit. There are three, which
docs/decisions/0029-decompression-limits.md explains:

    readable_size   readers: 256 MB, or 8 times the compressed size if that is more
    produced_size   producers: 2,000 times the compressed size, but at least 16 MB and at most `readable_size`
    rebuilt_size    producers, if the batch must be built again: as `produced_size`, but at most 64 MB, or 8 times
                    the compressed size
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final

import cramjam
import zstandard

from tailrace.records.batch import Buffer, Codec, CorruptBatch
from tailrace.records.codecs import codec_kernels

PIECE_SIZE: Final = 1 << 20

_MEGABYTE: Final = 1 << 20
_READABLE_SIZE: Final = 256 * _MEGABYTE
_READABLE_RATIO: Final = 8
_REBUILT_SIZE: Final = 64 * _MEGABYTE
_PRODUCED_SIZE: Final = 16 * _MEGABYTE
_PRODUCED_RATIO: Final = 2_000  # gzip, lz4 and snappy cannot exceed this ratio, only zstd can

_UINT32_LE: Final = Struct("<I")
_INT32: Final = Struct(">i")

GZIP_HEADER: Final = bytes.fromhex("1f8b08000000000000ff")
GZIP_TRAILER: Final = Struct("<II")  # CRC-32 and size of the contents
_GZIP_HEADER_CHECKSUM, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 0x02, 0x04, 0x08, 0x10
_GZIP_FIRST_STEP: Final = 512
_GZIP_STEP_MAX: Final = 16_384  # limits the bytes that zlib copies when it has not used all its input
_GZIP_EMPTY_MEMBERS_MAX: Final = 10_000  # in a row; about as many as Kafka reads before its stack overflows

SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
SNAPPY_HEADER: Final = SNAPPY_MAGIC + bytes.fromhex("0000000100000001")
_SNAPPY_HEADERS_MAX: Final = 2_000  # in a row; about as many as Kafka reads before its stack overflows

LZ4_MAGIC: Final = bytes.fromhex("04224d18")
LZ4_STORED: Final = 0x8000_0000

_JOINED_SIZE: Final = 65_536  # small blocks are joined until they have this size


class DecompressionFailed(CorruptBatch):
    """The bytes of the records are invalid for their codec."""


class DecompressedTooLarge(DecompressionFailed):
    """The records decompress to more bytes than the limit."""


def readable_size(compressed_size: int) -> int:
    """Return the largest decompressed size that readers accept."""
    return max(_READABLE_SIZE, _READABLE_RATIO * compressed_size)


def produced_size(compressed_size: int) -> int:
    """Return the largest decompressed size that is accepted from a producer."""
    return min(max(_PRODUCED_SIZE, _PRODUCED_RATIO * compressed_size), readable_size(compressed_size))


def rebuilt_size(compressed_size: int) -> int:
    """Return the largest decompressed size that is accepted from a producer if the batch must be built again."""
    return min(produced_size(compressed_size), max(_REBUILT_SIZE, _READABLE_RATIO * compressed_size))


def decompress(codec: Codec, data: Buffer, magic: int = 2, max_size: int | None = None) -> bytes:
    """Return the contents. `max_size` None means `readable_size`."""
    if codec == Codec.NONE:
        return bytes(data)
    pieces = decompressed_pieces(codec, data, magic, max_size)
    first = bytes(next(pieces, b""))
    second = next(pieces, None)
    if second is None:
        return first
    out = bytearray(first)
    out += second
    for piece in pieces:
        out += piece
    return bytes(out)


def decompressed_pieces(
    codec: Codec, data: Buffer, magic: int = 2, max_size: int | None = None, piece_size: int = PIECE_SIZE
) -> Iterator[bytes | memoryview]:
    """Yield the contents in pieces of at most `piece_size` bytes. A piece is valid until the next one is requested.

    Raises DecompressionFailed if the bytes are invalid for the codec, and DecompressedTooLarge if the contents exceed
    `max_size` (None means `readable_size`).
    """
    limit = readable_size(len(data)) if max_size is None else max_size
    size = 0
    try:
        for piece in _decode(codec, data, magic, limit):
            size += len(piece)
            if size > limit:
                raise _too_large(codec, limit)
            if len(piece) <= piece_size:
                yield piece
            else:
                view = memoryview(piece)
                for start in range(0, len(view), piece_size):
                    yield view[start : start + piece_size]
    except (zlib.error, cramjam.DecompressionError, zstandard.ZstdError) as error:
        raise DecompressionFailed(f"{codec.name.lower()} data cannot be decompressed: {error}") from error


def _decode(codec: Codec, data: Buffer, magic: int, limit: int) -> Iterator[bytes | memoryview]:
    if codec == Codec.NONE:
        return iter((memoryview(data),))
    if codec == Codec.GZIP:
        return _gzip_pieces(bytes(data))
    if codec == Codec.SNAPPY:
        return _snappy_pieces(memoryview(data), limit)
    if codec == Codec.LZ4:
        return _lz4_pieces(memoryview(data), magic)
    return _zstd_pieces(data)


def _too_large(codec: Codec, limit: int) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"{codec.name.lower()} data decompresses to more than the limit of {limit} bytes")


def _ends_early(codec: Codec) -> DecompressionFailed:
    return DecompressionFailed(f"{codec.name.lower()} data ends early")


# --- gzip -----------------------------------------------------------------------------------------------------------


def _gzip_pieces(data: bytes) -> Iterator[bytes]:
    position = _gzip_header_end(data, 0)
    if position < 0:
        raise DecompressionFailed("gzip data does not start with a gzip header")
    view = memoryview(data)
    empty_members = 0
    while position >= 0:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        checksum = size = 0
        step = _GZIP_FIRST_STEP
        while not inflate.eof:
            if position == len(view):
                raise _ends_early(Codec.GZIP)
            piece = inflate.decompress(view[position : position + step], PIECE_SIZE)
            position = min(position + step, len(view))
            step = min(2 * step, _GZIP_STEP_MAX)
            while piece:
                checksum = zlib.crc32(piece, checksum)
                size += len(piece)
                yield piece
                is_full = len(piece) == PIECE_SIZE and not inflate.eof
                piece = inflate.decompress(inflate.unconsumed_tail, PIECE_SIZE) if is_full else b""
        position -= len(inflate.unused_data)
        if len(view) - position < GZIP_TRAILER.size:
            raise _ends_early(Codec.GZIP)
        if GZIP_TRAILER.unpack_from(data, position) != (checksum, size & 0xFFFF_FFFF):
            raise DecompressionFailed("gzip data does not match its checksum")
        empty_members = 0 if size else empty_members + 1
        if empty_members > _GZIP_EMPTY_MEMBERS_MAX:
            raise DecompressionFailed(f"gzip data has more than {_GZIP_EMPTY_MEMBERS_MAX} empty members in a row")
        # Java reads the following bytes as another member if they start like one, and ignores them otherwise.
        position = _gzip_header_end(data, position + GZIP_TRAILER.size)


def _gzip_header_end(data: bytes, start: int) -> int:
    """Return the position after the header of a gzip member, or -1 if there is none. Reserved flags are ignored."""
    if len(data) - start < len(GZIP_HEADER) or data[start : start + 3] != GZIP_HEADER[:3]:
        return -1
    flags = data[start + 3]
    position = start + len(GZIP_HEADER)
    if flags & _GZIP_EXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            position = data.find(0, position) + 1
            if position == 0:
                return -1
    if flags & _GZIP_HEADER_CHECKSUM:
        checksum = int.from_bytes(data[position : position + 2], "little")
        if checksum != zlib.crc32(data[start:position]) & 0xFFFF:
            return -1
        position += 2
    return position if position <= len(data) else -1


# --- snappy ---------------------------------------------------------------------------------------------------------


def _snappy_pieces(view: memoryview, limit: int) -> Iterator[bytes]:
    if bytes(view[:8]) != SNAPPY_MAGIC or len(view) < len(SNAPPY_HEADER):
        yield _snappy_block(view, 0, limit)
        return
    out = bytearray()
    before = headers = 0
    position = len(SNAPPY_HEADER)
    while len(view) - position >= 4:  # snappy-java ignores a remainder shorter than a length field
        if bytes(view[position : position + 8]) == SNAPPY_MAGIC:
            position += len(SNAPPY_HEADER)  # a second stream, appended to the first
            headers += 1
            if headers > _SNAPPY_HEADERS_MAX:
                raise DecompressionFailed(f"snappy data has more than {_SNAPPY_HEADERS_MAX} headers in a row")
            continue
        headers = 0
        size = _INT32.unpack_from(view, position)[0]
        position += 4
        if size < 0 or size > len(view) - position:
            raise DecompressionFailed(f"snappy block length is {size} bytes, but {len(view) - position} follow")
        out += _snappy_block(view[position : position + size], before + len(out), limit)
        position += size
        if len(out) >= _JOINED_SIZE:
            before += len(out)
            yield bytes(out)
            out.clear()
    yield bytes(out)


def _snappy_block(block: memoryview, before: int, limit: int) -> bytes:
    size = 0
    for index, byte in enumerate(block[:5]):  # the uncompressed size, an unsigned varint
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if 3 * size > 64 * len(block):  # three bytes give at most 64
        raise DecompressionFailed(f"snappy block of {len(block)} bytes cannot decompress to {size} bytes")
    if before + size > limit:
        raise _too_large(Codec.SNAPPY, limit)
    return bytes(cramjam.snappy.decompress_raw(block))


# --- lz4 ------------------------------------------------------------------------------------------------------------


def _lz4_pieces(view: memoryview, magic: int) -> Iterator[memoryview]:
    flags, max_block_size, position = _lz4_frame(view, magic)
    checksum_size = 4 if flags & 0x10 else 0
    buffer = memoryview(bytearray(_JOINED_SIZE + max_block_size))
    filled = 0
    while True:  # Kafka ignores bytes after the end mark, even another frame
        if len(view) - position < 4:
            raise _ends_early(Codec.LZ4)
        size = _UINT32_LE.unpack_from(view, position)[0]
        is_stored = size & LZ4_STORED
        size &= ~LZ4_STORED
        position += 4
        if size == 0:
            if flags & 0x04 and len(view) - position < 4:  # a content checksum, which Kafka does not check
                raise _ends_early(Codec.LZ4)
            yield buffer[:filled]
            return
        if size > max_block_size:
            raise DecompressionFailed(f"lz4 block of {size} bytes is larger than the frame's {max_block_size}")
        if size + checksum_size > len(view) - position:
            raise _ends_early(Codec.LZ4)
        block = view[position : position + size]
        if checksum_size and codec_kernels.xxh32(block) != _UINT32_LE.unpack_from(view, position + size)[0]:
            raise DecompressionFailed(f"lz4 block at byte {position} does not match its checksum")
        if is_stored:
            buffer[filled : filled + size] = block
            filled += size
        else:
            filled += cramjam.lz4.decompress_block_into(block, buffer[filled : filled + max_block_size])
        position += size + checksum_size
        if filled >= _JOINED_SIZE:
            yield buffer[:filled]
            filled = 0


def _lz4_frame(view: memoryview, magic: int) -> tuple[int, int, int]:
    """Return the flags of a frame, the size of its largest block, and the position of its first block."""
    if len(view) < 7:
        raise _ends_early(Codec.LZ4)
    if view[:4] != LZ4_MAGIC:
        raise DecompressionFailed("lz4 data does not start with the frame magic number")
    flags, block_descriptor = view[4], view[5]
    if flags >> 6 != 1:
        raise DecompressionFailed(f"lz4 frame version {flags >> 6} is unknown")
    if flags & 0x03 or block_descriptor & 0x8F or block_descriptor >> 4 < 4:
        raise DecompressionFailed(f"lz4 frame descriptor {flags:#04x} {block_descriptor:#04x} is invalid")
    if not flags & 0x20:
        raise DecompressionFailed("lz4 blocks depend on each other, which Kafka does not read")
    position = 6 + (8 if flags & 0x08 else 0)
    if len(view) <= position:
        raise _ends_early(Codec.LZ4)
    if magic > 0 and codec_kernels.xxh32(view[4:position]) >> 8 & 0xFF != view[position]:
        raise DecompressionFailed("lz4 frame descriptor does not match its checksum")
    return flags, 1 << (2 * (block_descriptor >> 4) + 8), position + 1


# --- zstd -----------------------------------------------------------------------------------------------------------


def _zstd_pieces(data: Buffer) -> Iterator[memoryview]:
    if codec_kernels.zstd_size_bound(data) < 0:  # the library would read an incomplete frame as a shorter one
        raise _ends_early(Codec.ZSTD)
    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    buffer = memoryview(bytearray(min(PIECE_SIZE, max(_JOINED_SIZE, 16 * len(data)))))
    while filled := reader.readinto(buffer):
        yield buffer[:filled]
