"""Codecs: framings byte by byte, what is accepted on reading, what is refused, and how large it may become."""

import gzip
import random
import struct
import zlib

import cramjam
import pytest
import zstandard

from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, CorruptBatch
from tailrace.records.codecs.codec_kernels import xxh32
from tailrace.records.codecs.compression import compress, topic_codec
from tailrace.records.codecs.decompression import DecompressionFailed, decompress

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"the quick brown fox jumps over the lazy dog, " * 5000
NOISE = random.Random(1).randbytes(150_000)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"a", TEXT, NOISE, bytes(70_000)], ids=["none", "one", "text", "noise", "zeros"])
def test_compressed_bytes_are_decompressed_to_the_same_bytes(codec, data):
    packed = compress(codec, data)
    assert decompress(codec, packed) == data
    assert decompress(codec, memoryview(bytearray(packed))) == data


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 3, 17)), (Codec.ZSTD, (-5, 1, 19))]
)
def test_compression_levels_change_only_the_compressed_bytes(codec, levels):
    for level in levels:
        packed = compress(codec, TEXT[:9000], level)
        assert decompress(codec, packed) == TEXT[:9000]


@pytest.mark.parametrize("codec", PACKED)
def test_a_truncated_stream_is_refused(codec):
    packed = compress(codec, TEXT[:100_000])
    for size in (1, 5, 10, len(packed) // 2, len(packed) - 5, len(packed) - 1):
        with pytest.raises(DecompressionFailed):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKED)
def test_a_decompression_bomb_is_refused(codec):
    bomb = compress(codec, bytes(3_000_000))
    assert len(bomb) < 200_000
    with pytest.raises(CorruptBatch, match="more than the limit of 1000000 bytes"):
        decompress(codec, bomb, max_size=1_000_000)
    assert len(decompress(codec, bomb, max_size=3_000_000)) == 3_000_000


def test_a_topic_names_its_codec_and_level_or_leaves_them_to_the_producer():
    levels = {"compression_gzip_level": 4, "compression_lz4_level": 5, "compression_zstd_level": 6}
    wanted = {
        "producer": (Codec.SNAPPY, None),
        "uncompressed": (Codec.NONE, None),
        "gzip": (Codec.GZIP, 4),
        "snappy": (Codec.SNAPPY, None),
        "lz4": (Codec.LZ4, 5),
        "zstd": (Codec.ZSTD, 6),
    }
    for name, answer in wanted.items():
        assert topic_codec(TopicConfig(compression_type=name, **levels), Codec.SNAPPY) == answer


# --- gzip ---


def test_gzip_has_javas_header():
    packed = compress(Codec.GZIP, b"abc")
    assert packed[:10].hex() == "1f8b08000000000000ff"
    assert packed[-8:] == struct.pack("<II", zlib.crc32(b"abc"), 3)
    assert gzip.decompress(packed) == b"abc"


def test_gzip_of_several_members_is_read_and_bytes_after_it_are_ignored():
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(Codec.GZIP, packed) == b"one two"
    assert decompress(Codec.GZIP, packed + bytes(30)) == b"one two"


def test_gzip_headers_with_all_their_fields_are_read():
    body = compress(Codec.GZIP, b"abc")[10:]
    header = bytes.fromhex("1f8b08fe00000000" + "00ff") + b"\x03\x00xyz" + b"name\0" + b"comment\0"
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    assert decompress(Codec.GZIP, header + body) == b"abc"
    with pytest.raises(DecompressionFailed, match="header"):
        decompress(Codec.GZIP, header[:-1] + b"\xff" + body)


def test_gzip_with_a_wrong_checksum_or_method_is_refused():
    packed = bytearray(compress(Codec.GZIP, b"abc"))
    packed[-8] ^= 1
    with pytest.raises(DecompressionFailed, match="checksum"):
        decompress(Codec.GZIP, packed)
    with pytest.raises(DecompressionFailed, match="header"):
        decompress(Codec.GZIP, b"\x1f\x8b\x07" + packed[3:])


# --- snappy ---


def test_snappy_has_the_java_framing_in_blocks_of_32_kb():
    packed = compress(Codec.SNAPPY, TEXT[:40_000])
    assert packed[:16].hex() == "82534e41505059000000000100000001"
    first = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == TEXT[:32_768]
    second = int.from_bytes(packed[20 + first : 24 + first], "big")
    assert 24 + first + second == len(packed)


def test_snappy_without_framing_is_read():
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_concatenated_snappy_streams_are_read():
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"one ") + compress(Codec.SNAPPY, b"two")) == b"one two"


def test_snappy_blocks_with_a_wrong_size_are_refused():
    packed = bytearray(compress(Codec.SNAPPY, b"abc"))
    packed[16:20] = b"\xff\xff\xff\xff"
    with pytest.raises(DecompressionFailed, match="length is -1 bytes"):
        decompress(Codec.SNAPPY, packed)
    with pytest.raises(DecompressionFailed, match="cannot decompress to 4294967295"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f")


# --- lz4 ---


def test_lz4_frames_have_independent_64_kb_blocks_and_no_checksums():
    packed = compress(Codec.LZ4, NOISE)
    assert packed[:7].hex() == "04224d18604082"
    assert struct.unpack_from("<I", packed, 7)[0] == 65_536 | 0x8000_0000  # noise is stored
    assert packed[-4:] == bytes(4)
    assert bytes(cramjam.lz4.decompress(packed)) == NOISE


def test_lz4_of_format_0_has_the_wrong_header_checksum_which_readers_ignore():
    packed = compress(Codec.LZ4, b"abc", magic=0)
    assert packed[6] != 0x82
    assert decompress(Codec.LZ4, packed, magic=0) == b"abc"
    with pytest.raises(DecompressionFailed, match="descriptor does not match"):
        decompress(Codec.LZ4, packed, magic=1)


@pytest.mark.parametrize("content_checksum", [False, True])
def test_lz4_frames_of_other_encoders_are_read(content_checksum):
    encoder = cramjam.lz4.Compressor(level=3, content_checksum=content_checksum, block_linked=False)
    encoder.compress(TEXT)
    frame = bytes(encoder.finish())  # with block checksums
    assert decompress(Codec.LZ4, frame) == TEXT
    assert decompress(Codec.LZ4, frame + b"ignored") == TEXT


def test_lz4_frames_with_a_content_size_are_read():
    descriptor = b"\x68\x40" + struct.pack("<Q", 3)
    frame = bytes.fromhex("04224d18") + descriptor + bytes([xxh32(descriptor) >> 8 & 0xFF])
    frame += struct.pack("<I", 3 | 0x8000_0000) + b"abc" + bytes(4)
    assert decompress(Codec.LZ4, frame) == b"abc"


@pytest.mark.parametrize(
    ("position", "value", "words"),
    [
        (0, 5, "magic number"),
        (4, 0xA0, "version"),
        (4, 0x61, "descriptor"),
        (4, 0x40, "depend on each other"),
        (5, 0x41, "descriptor"),
        (5, 0x30, "descriptor"),
        (6, 0, "checksum"),
        (9, 0x7F, "larger than the frame's"),
        (7, 0x50, "ends early"),
    ],
)
def test_lz4_frames_that_kafka_does_not_read_are_refused(position, value, words):
    packed = bytearray(compress(Codec.LZ4, TEXT[:100]))
    packed[position] = value
    with pytest.raises(DecompressionFailed, match=words):
        decompress(Codec.LZ4, packed)


def test_lz4_block_checksums_are_verified():
    encoder = cramjam.lz4.Compressor(level=3, content_checksum=False, block_linked=False)
    encoder.compress(TEXT[:1000])
    frame = bytearray(bytes(encoder.finish()))
    assert frame[4] & 0x10
    frame[-5] ^= 1  # the last block's checksum lies before the end mark
    with pytest.raises(DecompressionFailed, match="does not match its checksum"):
        decompress(Codec.LZ4, frame)


# --- zstd ---


def test_zstd_frames_have_no_content_size_and_end_with_an_empty_block():
    packed = compress(Codec.ZSTD, b"abc")
    assert packed.hex() == "28b52ffd0058180000616263010000"
    assert zstandard.get_frame_parameters(packed).content_size in (0, zstandard.CONTENTSIZE_UNKNOWN)


def test_several_zstd_frames_with_checksums_or_skippable_are_read():
    frames = zstandard.ZstdCompressor(write_checksum=True).compress(b"one ")
    frames += bytes.fromhex("502a4d1803000000") + b"abc"
    frames += compress(Codec.ZSTD, b"two")
    assert decompress(Codec.ZSTD, frames) == b"one two"
    with pytest.raises(DecompressionFailed, match="cannot be decompressed"):
        decompress(Codec.ZSTD, frames + b"rubbish")
