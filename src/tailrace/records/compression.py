"""gzip, snappy, lz4 and zstd behind compress() and decompress().

compress() writes what Kafka 4.3 writes, byte for byte, so that a batch that is compressed again (by the cleaner, or
because a topic demands another codec) gives the same file on both sides:

    gzip    Java's header (no name, no time, system unknown), one member
    snappy  snappy-java's framing: magic, two version numbers, then blocks of 32 KB, each behind its int32 length
    lz4     one frame of independent 64 KB blocks without checksums; a block that does not shrink is stored
    zstd    one frame without content size or checksum, flushed before it is ended

decompress() reads what Kafka reads: gzip of several members, snappy with and without framing, lz4 frames with content
size and checksums, several zstd frames. Its output is bounded, because a few bytes can unfold into gigabytes.
docs/decisions/0003-codecs.md says where each library comes from and what was compared.
"""

from __future__ import annotations

import zlib
from struct import Struct

import cramjam
import zstandard

from tailrace.model.topic_config import TopicConfig
from tailrace.records import kernels
from tailrace.records.batch import Buffer, Codec, CorruptBatch

DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
MAX_DECOMPRESSED_SIZE = 256 * 1024 * 1024

_UINT32_LE = Struct("<I")
_INT32 = Struct(">i")

_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_GZIP_TRAILER = Struct("<II")  # CRC-32 and size of the contents
_GZIP_HEADER_CHECKSUM, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 0x02, 0x04, 0x08, 0x10

_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = _SNAPPY_MAGIC + bytes.fromhex("0000000100000001")
_SNAPPY_BLOCK_SIZE = 32 * 1024

_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_DESCRIPTOR = b"\x60\x40"  # version 1, independent blocks; 64 KB blocks
_LZ4_BLOCK_SIZE = 64 * 1024
_LZ4_STORED = 0x8000_0000
_LZ4_FAST_LEVEL = 9  # what Kafka calls level 9 is lz4's fast mode; every other level is the high-compression mode

_ZSTD_STEP = 2048
_ZSTD_NOTHING = bytes.fromhex("28b52ffd2000010000")


class DecompressionFailed(CorruptBatch):
    """The records' bytes are not what their codec allows, or unfold into too many."""


def compress(codec: Codec, data: Buffer, level: int | None = None, *, magic: int = 2) -> bytes:
    """`data` as Kafka's producer and broker write it; `level` None is Kafka's default, snappy has no levels."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.SNAPPY:
        return _compress_snappy(data)
    if level is None:
        level = DEFAULT_LEVELS[codec]
    if codec == Codec.GZIP:
        return _compress_gzip(data, level)
    if codec == Codec.LZ4:
        return _compress_lz4(data, level, magic)
    return _compress_zstd(data, level)


def decompress(codec: Codec, data: Buffer, magic: int = 2, max_size: int = MAX_DECOMPRESSED_SIZE) -> bytes:
    """What was compressed; DecompressionFailed if the bytes are not what the codec allows, or unfold past max_size."""
    if codec == Codec.NONE:
        return bytes(data)
    try:
        if codec == Codec.GZIP:
            return _decompress_gzip(data, max_size)
        if codec == Codec.SNAPPY:
            return _decompress_snappy(data, max_size)
        if codec == Codec.LZ4:
            return _decompress_lz4(data, magic, max_size)
        return _decompress_zstd(data, max_size)
    except (zlib.error, cramjam.DecompressionError, zstandard.ZstdError) as error:
        raise DecompressionFailed(f"{codec.name.lower()} data cannot be decompressed: {error}") from error


def topic_codec(config: TopicConfig, source: Codec) -> tuple[Codec, int | None]:
    """The codec and level in which a topic keeps what was produced in the codec `source`; None is the default level."""
    if config.compression_type == "producer":
        return source, None
    if config.compression_type == "uncompressed":
        return Codec.NONE, None
    codec = Codec[config.compression_type.upper()]
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return codec, levels.get(codec)


def _too_large(codec: Codec, max_size: int) -> DecompressionFailed:
    return DecompressionFailed(f"{codec.name.lower()} data decompresses to more than the {max_size} bytes allowed")


def _ends_early(codec: Codec) -> DecompressionFailed:
    return DecompressionFailed(f"{codec.name.lower()} data ends early")


def _compress_gzip(data: Buffer, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    return _GZIP_HEADER + body + _GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFF_FFFF)


def _decompress_gzip(data: Buffer, max_size: int) -> bytes:
    view = memoryview(data)
    position = _gzip_header_end(view, 0)
    if position < 0:
        raise DecompressionFailed("gzip data does not start with a gzip header")
    parts: list[bytes] = []
    size = 0
    while position >= 0:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        part = inflate.decompress(view[position:], max_size - size + 1)
        size += len(part)
        if size > max_size:
            raise _too_large(Codec.GZIP, max_size)
        parts.append(part)
        position = len(view) - len(inflate.unused_data)
        if not inflate.eof or len(view) - position < _GZIP_TRAILER.size:
            raise _ends_early(Codec.GZIP)
        if _GZIP_TRAILER.unpack_from(view, position) != (zlib.crc32(part), len(part) & 0xFFFF_FFFF):
            raise DecompressionFailed("gzip data does not match its checksum")
        # Java takes what follows for another member if it starts like one, and ignores it otherwise.
        position = _gzip_header_end(view, position + _GZIP_TRAILER.size)
    return b"".join(parts)


def _gzip_header_end(view: memoryview, start: int) -> int:
    """The position after the header of a gzip member, -1 if there is none; reserved flags are overlooked."""
    if len(view) - start < len(_GZIP_HEADER) or view[start : start + 3] != _GZIP_HEADER[:3]:
        return -1
    flags = view[start + 3]
    position = start + len(_GZIP_HEADER)
    if flags & _GZIP_EXTRA:
        position += 2 + int.from_bytes(view[position : position + 2], "little")
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            position = bytes(view).find(0, position) + 1
            if position == 0:
                return -1
    if flags & _GZIP_HEADER_CHECKSUM:
        checksum = int.from_bytes(view[position : position + 2], "little")
        if checksum != zlib.crc32(view[start:position]) & 0xFFFF:
            return -1
        position += 2
    return position if position <= len(view) else -1


def _compress_snappy(data: Buffer) -> bytes:
    out = bytearray(_SNAPPY_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _SNAPPY_BLOCK_SIZE):
        block = kernels.snappy_compress(bytes(view[start : start + _SNAPPY_BLOCK_SIZE]))
        out += _INT32.pack(len(block))
        out += block
    return bytes(out)


def _decompress_snappy(data: Buffer, max_size: int) -> bytes:
    view = memoryview(data)
    if bytes(view[:8]) != _SNAPPY_MAGIC or len(view) < len(_SNAPPY_HEADER):
        return _decompress_snappy_block(view, 0, max_size)
    out = bytearray()
    position = len(_SNAPPY_HEADER)
    while len(view) - position >= 4:  # fewer bytes than a length are no block, for snappy-java too
        if bytes(view[position : position + 8]) == _SNAPPY_MAGIC:
            position += len(_SNAPPY_HEADER)  # a second stream, glued on
            continue
        size = _INT32.unpack_from(view, position)[0]
        position += 4
        if size < 0 or size > len(view) - position:
            raise DecompressionFailed(f"snappy block claims {size} bytes, {len(view) - position} are there")
        out += _decompress_snappy_block(view[position : position + size], len(out), max_size)
        position += size
    return bytes(out)


def _decompress_snappy_block(block: memoryview, before: int, max_size: int) -> bytes:
    size = 0
    for index, byte in enumerate(block[:5]):  # the size of the contents, an unsigned varint
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if before + size > max_size:
        raise _too_large(Codec.SNAPPY, max_size)
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_lz4(data: Buffer, level: int, magic: int) -> bytes:
    out = bytearray(_LZ4_MAGIC + _LZ4_DESCRIPTOR)
    # Format 0 clients took the checksum over the magic number too; the mistake became part of that format.
    out.append(kernels.xxh32(out if magic == 0 else _LZ4_DESCRIPTOR) >> 8 & 0xFF)
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK_SIZE):
        block = view[start : start + _LZ4_BLOCK_SIZE]
        if level == _LZ4_FAST_LEVEL:
            _append_lz4_block(out, bytes(cramjam.lz4.compress_block(block, store_size=False)), block)
        else:
            _append_high_compression(out, block, level)
    out += bytes(4)
    return bytes(out)


def _append_lz4_block(out: bytearray, packed: Buffer, block: memoryview) -> None:
    if len(packed) >= len(block):
        out += _UINT32_LE.pack(len(block) | _LZ4_STORED)
        out += block
    else:
        out += _UINT32_LE.pack(len(packed))
        out += packed


def _append_high_compression(out: bytearray, block: memoryview, level: int) -> None:
    """The high-compression mode is only to be had as a frame: its blocks are taken out and framed again.

    The frame has a checksum behind every block, which Kafka's has not. Levels 1 and 2 are the same mode in lz4, but its
    frame takes 1 for the fast mode.
    """
    encoder = cramjam.lz4.Compressor(level=max(level, 2), content_checksum=False, block_linked=False)
    encoder.compress(bytes(block))
    frame = memoryview(bytes(encoder.finish()))
    position = 7
    while True:
        size = _UINT32_LE.unpack_from(frame, position)[0]
        if size == 0:
            return
        stop = position + 4 + (size & ~_LZ4_STORED)
        out += frame[position:stop]
        position = stop + 4


def _decompress_lz4(data: Buffer, magic: int, max_size: int) -> bytes:
    view = memoryview(data)
    if len(view) < 7:
        raise _ends_early(Codec.LZ4)
    if view[:4] != _LZ4_MAGIC:
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
    if magic > 0 and kernels.xxh32(view[4:position]) >> 8 & 0xFF != view[position]:
        raise DecompressionFailed("lz4 frame descriptor does not match its checksum")
    position += 1
    max_block_size = 1 << (2 * (block_descriptor >> 4) + 8)
    buffer = bytearray(max_block_size)
    out = bytearray()
    while True:  # what follows the end mark, another frame included, is ignored as Kafka ignores it
        if len(view) - position < 4:
            raise _ends_early(Codec.LZ4)
        size = _UINT32_LE.unpack_from(view, position)[0]
        stored = size & _LZ4_STORED
        size &= ~_LZ4_STORED
        position += 4
        if size == 0:
            if flags & 0x04 and len(view) - position < 4:  # a checksum of the contents, which Kafka does not look at
                raise _ends_early(Codec.LZ4)
            return bytes(out)
        if size > max_block_size:
            raise DecompressionFailed(f"lz4 block of {size} bytes is larger than the frame's {max_block_size}")
        checksum_size = 4 if flags & 0x10 else 0
        if size + checksum_size > len(view) - position:
            raise _ends_early(Codec.LZ4)
        block = view[position : position + size]
        if checksum_size and kernels.xxh32(block) != _UINT32_LE.unpack_from(view, position + size)[0]:
            raise DecompressionFailed(f"lz4 block at byte {position} does not match its checksum")
        if stored:
            out += block
        else:
            out += memoryview(buffer)[: cramjam.lz4.decompress_block_into(block, buffer)]
        if len(out) > max_size:
            raise _too_large(Codec.LZ4, max_size)
        position += size + checksum_size


def _compress_zstd(data: Buffer, level: int) -> bytes:
    if len(data) == 0:
        return _ZSTD_NOTHING
    stream = zstandard.ZstdCompressor(level=level, write_content_size=False).compressobj()
    # Closing Kafka's stream first flushes it: the data's last block is not the frame's last, an empty one follows.
    return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()


def _decompress_zstd(data: Buffer, max_size: int) -> bytes:
    view = memoryview(data)
    out = bytearray()
    position = 0
    while position < len(view):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if position >= len(view):
                raise _ends_early(Codec.ZSTD)
            # Four bytes can stand for a block of 128 KB: small steps keep the overshoot past max_size small.
            step = view[position : position + _ZSTD_STEP]
            out += frame.decompress(step)
            position += len(step)
            if len(out) > max_size:
                raise _too_large(Codec.ZSTD, max_size)
        position -= len(frame.unused_data)
    return bytes(out)
