"""Encoders of gzip, snappy, lz4 and zstd (`decompression.py` has the decoders).

compress() writes the same bytes as Kafka 4.3. A batch that is compressed again, by the cleaner or because the topic has
another codec, therefore gives the same file in both:

    gzip    Java's header (no name, no time, system unknown), one member
    snappy  snappy-java's framing: magic, two version numbers, then blocks of 32 KB, each after its int32 length
    lz4     one frame of independent 64 KB blocks without checksums; a block that does not shrink is stored
    zstd    one frame without content size or checksum, flushed before its end

docs/decisions/0003-codecs.md explains where each library comes from and what was compared.
"""

from __future__ import annotations

import zlib
from struct import Struct

import cramjam
import zstandard

from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Buffer, Codec
from tailrace.records.codecs import codec_kernels
from tailrace.records.codecs.decompression import GZIP_HEADER, GZIP_TRAILER, LZ4_MAGIC, LZ4_STORED, SNAPPY_HEADER

DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}

_UINT32_LE = Struct("<I")
_INT32 = Struct(">i")

_SNAPPY_BLOCK_SIZE = 32 * 1024

_LZ4_DESCRIPTOR = b"\x60\x40"  # version 1, independent blocks; 64 KB blocks
_LZ4_BLOCK_SIZE = 64 * 1024
_LZ4_FAST_LEVEL = 9  # Kafka's level 9 is lz4's fast mode; every other level is its high-compression mode

_ZSTD_NOTHING = bytes.fromhex("28b52ffd2000010000")


def compress(codec: Codec, data: Buffer, level: int | None = None, *, magic: int = 2) -> bytes:
    """Compress `data` as Kafka's producer and broker do. `level` None is Kafka's default. Snappy has no levels."""
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


def topic_codec(config: TopicConfig, source: Codec) -> tuple[Codec, int | None]:
    """Return codec and level in which a topic stores a batch that was produced with the codec `source`. None is the
    default level."""
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


def _compress_gzip(data: Buffer, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    return GZIP_HEADER + body + GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFF_FFFF)


def _compress_snappy(data: Buffer) -> bytes:
    out = bytearray(SNAPPY_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _SNAPPY_BLOCK_SIZE):
        block = codec_kernels.snappy_compress(bytes(view[start : start + _SNAPPY_BLOCK_SIZE]))
        out += _INT32.pack(len(block))
        out += block
    return bytes(out)


def _compress_lz4(data: Buffer, level: int, magic: int) -> bytes:
    out = bytearray(LZ4_MAGIC + _LZ4_DESCRIPTOR)
    # Format 0 clients included the magic number in the checksum. The mistake became part of that format.
    out.append(codec_kernels.xxh32(out if magic == 0 else _LZ4_DESCRIPTOR) >> 8 & 0xFF)
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
        out += _UINT32_LE.pack(len(block) | LZ4_STORED)
        out += block
    else:
        out += _UINT32_LE.pack(len(packed))
        out += packed


def _append_high_compression(out: bytearray, block: memoryview, level: int) -> None:
    """Append a block in high-compression mode. The library has this mode only for frames, so its blocks are extracted.

    The library's frame has a checksum after every block, Kafka's has none. Levels 1 and 2 are the same mode in lz4, but
    the library takes level 1 for the fast mode.
    """
    encoder = cramjam.lz4.Compressor(level=max(level, 2), content_checksum=False, block_linked=False)
    encoder.compress(bytes(block))
    frame = memoryview(bytes(encoder.finish()))
    position = 7
    while True:
        size = _UINT32_LE.unpack_from(frame, position)[0]
        if size == 0:
            return
        stop = position + 4 + (size & ~LZ4_STORED)
        out += frame[position:stop]
        position = stop + 4


def _compress_zstd(data: Buffer, level: int) -> bytes:
    if len(data) == 0:
        return _ZSTD_NOTHING
    stream = zstandard.ZstdCompressor(level=level, write_content_size=False).compressobj()
    # Kafka's stream is flushed before it is closed. The data's last block is therefore not the frame's last: an empty
    # block follows.
    return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()
