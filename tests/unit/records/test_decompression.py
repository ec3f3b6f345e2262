"""Decoders take linear time, return pieces and obey a limit; the walk over records accepts pieces."""

from __future__ import annotations

import random
from time import process_time

import pytest
import zstandard

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import TopicConfig
from tailrace.records import kernels
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder, assemble_batch
from tailrace.records.checks import check_kernels
from tailrace.records.checks.checked_records import LOOP_COST_MAX, check_cost
from tailrace.records.checks.validation import check_produced
from tailrace.records.codecs import codec_kernels
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.decompression import PIECE_SIZE, DecompressionFailed, decompress, decompressed_pieces
from tailrace.records.record import PORTION_SIZE, record_portions
from tests.support.validated import placed, validate_produced

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def batch(payload: bytes, count: int, codec: Codec) -> bytes:
    return assemble_batch(
        payload,
        base_offset=0,
        last_offset=count - 1,
        base_timestamp=1_000,
        max_timestamp=1_000,
        attributes=int(codec),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        leader_epoch=-1,
        record_count=count,
    )


def records(count: int, value: bytes = b"v") -> bytes:
    out = bytearray()
    for index in range(count):
        kernels.encode_record(out, index, 0, None, value, ())
    return bytes(out)


@pytest.mark.parametrize("codec", PACKED)
def test_decompressed_pieces_have_a_bounded_size(codec):
    data = random.Random(1).randbytes(1_000) * 5_000
    sizes = []
    out = bytearray()
    for piece in decompressed_pieces(codec, compress(codec, data)):
        sizes.append(len(piece))
        out += piece
    assert out == data
    assert max(sizes) <= PIECE_SIZE
    assert len(sizes) > 4


@pytest.mark.parametrize("codec", PACKED)
def test_many_empty_frames_take_linear_time(codec):
    """Twenty times as many must not take four hundred times as long."""
    nothing = {Codec.SNAPPY: b"\x00\x00\x00\x01\x00"}.get(codec, compress(codec, b""))
    whole = compress(codec, b"abc")
    start = 16 if codec == Codec.SNAPPY else 0

    def taken(count: int) -> float:
        data = whole[:start] + nothing * count + whole[start:]
        best = 1e9
        for _ in range(3):
            began = process_time()
            assert decompress(codec, data) == (b"" if codec == Codec.LZ4 else b"abc")
            best = min(best, process_time() - began)
        return best

    assert taken(8_000) < 100 * max(taken(400), 0.0002)


def test_more_empty_gzip_members_than_kafka_reads_are_refused():
    one = compress(Codec.GZIP, b"abc")
    with pytest.raises(DecompressionFailed, match="10000 empty members"):
        decompress(Codec.GZIP, compress(Codec.GZIP, b"") * 10_001 + one)


def test_zstd_size_bound_detects_data_that_ends_inside_a_frame():
    data = compress(Codec.ZSTD, records(5_000))
    assert codec_kernels.zstd_size_bound(data) >= len(records(5_000))
    assert codec_kernels.zstd_size_bound(data * 3) == 3 * codec_kernels.zstd_size_bound(data)
    for size in range(1, len(data)):
        assert codec_kernels.zstd_size_bound(data[:size]) == -1


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1_000])
def test_a_walk_in_pieces_has_the_result_of_a_walk_over_the_whole(size):
    builder = BatchBuilder()
    random_ = random.Random(size)
    for index in range(200):
        key = None if index % 3 else random_.randbytes(random_.randrange(20))
        headers = [("h" * random_.randrange(9), random_.choice([None, b"", b"value"])) for _ in range(index % 4)]
        builder.append(random_.randrange(5_000), key, random_.randbytes(random_.randrange(300)), headers)
    made = RecordBatch(memoryview(builder.build()))
    payload = bytes(made.payload)
    rows = [
        (delta, made.base_timestamp + time, key is not None)
        for delta, time, key, *_ in kernels.decode_records(payload, 200)
    ]
    walk = check_kernels.RecordWalk(200, made.base_timestamp, True, True, 0, 2_500, 10_000)
    rest = b""
    for start in range(0, len(payload), size):
        data = rest + payload[start : start + size]
        used = walk.feed(data, False)
        rest = data[used:]
        assert len(rest) < 10
    walk.feed(rest, True)
    assert (walk.index, walk.sequential, walk.largest) == (200, True, max(time for _, time, _ in rows))
    assert walk.found == [
        (index, delta, time, key) for index, (delta, time, key) in enumerate(rows) if not key or time > 2_500
    ]
    assert walk.refused == len(walk.found)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_walk_over_records_that_end_early_or_late_is_refused(cut):
    payload = records(10)
    short = check_kernels.RecordWalk(10, 0, True)
    used = short.feed(payload[:-cut], False)
    with pytest.raises(CorruptBatch, match="is broken"):
        short.feed(payload[used:-cut], True)
    long = check_kernels.RecordWalk(10, 0, True)
    with pytest.raises(CorruptBatch, match="follow the last of 10 records"):
        long.feed(payload + bytes(cut), False)


def test_a_small_batch_that_decompresses_to_hundreds_of_megabytes_is_too_large():
    out = bytearray()
    kernels.encode_record(out, 0, 0, None, bytes(200 << 20), ())
    data = batch(zstandard.ZstdCompressor().compress(bytes(out)), 1, Codec.ZSTD)
    assert len(data) < 10_000
    assert check_cost(data, TopicConfig()) > LOOP_COST_MAX
    with pytest.raises(KafkaError, match="more than the limit of 16777216 bytes") as refusal:
        validate_produced(data, config=TopicConfig(), base_offset=0, leader_epoch=0, now_ms=1_000)
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", PACKED)
def test_portions_contain_whole_records(codec):
    payload = records(60_000) + b""
    data = batch(compress(codec, payload), 60_000, codec)
    portions = list(record_portions(RecordBatch(memoryview(data))))
    assert b"".join(portion for portion, _ in portions) == payload
    assert sum(count for _, count in portions) == 60_000
    assert max(len(portion) for portion, _ in portions) <= 2 * PORTION_SIZE
    with pytest.raises(CorruptBatch, match="follow the last of 59999 records"):
        list(record_portions(RecordBatch(memoryview(batch(compress(codec, payload), 59_999, codec)))))


@pytest.mark.parametrize("target", ["producer", "zstd", "uncompressed"])
def test_records_checked_first_and_placed_later_have_the_same_bytes_as_validated_ones(target):
    config = TopicConfig(compression_type=target)
    data = batch(compress(Codec.LZ4, records(3_000)), 3_000, Codec.LZ4)
    at_once = validate_produced(data, config=config, base_offset=70, leader_epoch=4, now_ms=2_000)
    later = placed(check_produced(data, config=config, now_ms=2_000), 70, 4)
    assert bytes(later.data) == bytes(at_once.data)
    assert later[2:] == at_once[2:]
    assert (later.first_offset, later.last_offset) == (70, 3_069)
