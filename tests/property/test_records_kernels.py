"""The compiled kernels and the same file interpreted give the same answers, on good bytes and on hostile ones."""

from __future__ import annotations

import struct

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.log.segments.indexes import index_kernels
from tailrace.model.topic_config import TopicConfig
from tailrace.records import header_kernels, kernels
from tailrace.records.batch import HEADER, CorruptBatch, RecordBatch
from tailrace.records.checks import check_kernels
from tailrace.records.codecs import codec_kernels
from tailrace.records.codecs.crc32c import crc32c
from tests.support.interpreted import interpreted as interpreted_form
from tests.support.interpreted import together
from tests.support.validated import validate_produced

MODULES = (kernels, check_kernels, header_kernels, index_kernels, codec_kernels)
compiled = together(*MODULES)
interpreted = together(*map(interpreted_form, MODULES))
pytestmark = pytest.mark.skipif(not all(one.COMPILED for one in MODULES), reason="the kernels were not compiled here")
many = settings(max_examples=150, deadline=None)

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
contents = st.one_of(st.none(), st.binary(max_size=70))
headers = st.lists(st.tuples(st.binary(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=3)
small = st.integers(-3, 90)
records = st.lists(st.tuples(st.one_of(small, int32), st.one_of(small, int64), contents, contents, headers), max_size=8)


@st.composite
def payloads(draw):
    """Draw a payload and a record count: well-formed, or with changed, cut or added bytes, or with a wrong count."""
    rows = draw(records)
    out = bytearray()
    for row in rows:
        interpreted.encode_record(out, *row)
    count = len(rows)
    for damage in draw(st.lists(st.sampled_from(["flip", "cut", "add", "count"]), max_size=2)):
        if damage == "flip" and out:
            out[draw(st.integers(0, len(out) - 1))] ^= 1 << draw(st.integers(0, 7))
        elif damage == "cut":
            del out[draw(st.integers(0, len(out))) :]
        elif damage == "add":
            out += draw(st.binary(max_size=12))
        else:
            count = draw(st.one_of(st.integers(-2, 12), int32.filter(lambda n: n < 10_000)))
    return bytes(out), count


def outcome(call, *arguments):
    """Return the result of a call, or the name and text of its error; a read out of range is a bug in either form."""
    try:
        return call(*arguments)
    except IndexError:
        raise
    except Exception as error:
        return type(error).__name__, str(error)


def walked(kernels, data, count, *rules):
    walk = kernels.RecordWalk(count, *rules)
    walk.feed(data, True)
    return walk.index, walk.sequential, walk.largest, walk.refused, walk.found


def same(name: str, *arguments):
    result = outcome(getattr(compiled, name), *arguments)
    assert result == outcome(getattr(interpreted, name), *arguments)
    return result


@many
@given(
    payload=payloads(),
    base_timestamp=st.one_of(small, int64),
    check_sizes=st.booleans(),
    needs_keys=st.booleans(),
    bounds=st.tuples(st.one_of(small, int64), st.one_of(small, int64)),
)
def test_compiled_and_interpreted_record_walks_are_equal(payload, base_timestamp, check_sizes, needs_keys, bounds):
    rules = (base_timestamp, check_sizes, needs_keys, *bounds, 3)
    assert outcome(walked, compiled, *payload, *rules) == outcome(walked, interpreted, *payload, *rules)


@many
@given(payload=payloads())
def test_decode_records(payload):
    decoded = same("decode_records", *payload)
    if isinstance(decoded, list):
        assert walked(compiled, *payload, 0, True, True)[3] == sum(record[2] is None for record in decoded)


@many
@given(row=st.tuples(int32, int64, contents, contents, headers))
def test_encode_record(row):
    ours, theirs = bytearray(b"x"), bytearray(b"x")
    compiled.encode_record(ours, *row)
    interpreted.encode_record(theirs, *row)
    assert ours == theirs
    offset_delta, timestamp_delta, key, value, pairs = row
    assert compiled.decode_records(bytes(ours[1:]), 1) == [(offset_delta, timestamp_delta, key, value, tuple(pairs), 0)]


@many
@given(payload=payloads(), bases=st.tuples(int64, int64), bounds=st.tuples(int64, int64))
def test_find_record(payload, bases, bounds):
    same("find_record", *payload, *bases, *bounds)


@many
@given(
    payload=payloads(),
    keep=st.binary(max_size=12),
    base=int64,
    append_time=st.one_of(st.none(), int64),
    new_base=st.one_of(st.none(), int64),
)
def test_rewrite_records(payload, keep, base, append_time, new_base):
    same("rewrite_records", *payload, keep, base, append_time, new_base)


@st.composite
def produced_batches(draw):
    """Draw a batch as a producer sends it, with a few changed bytes in its header and mostly a right checksum."""
    records = bytearray()
    rows = draw(st.lists(st.tuples(st.integers(-1, 90), contents, contents, headers), min_size=1, max_size=8))
    for index, row in enumerate(rows):
        interpreted.encode_record(records, index, *row)
    data, count = draw(st.one_of(st.just((bytes(records), len(rows))), payloads()))
    base_timestamp = draw(st.sampled_from([1000, 1000, 0, 2**62]))
    try:
        largest = walked(interpreted, data, count, base_timestamp, True)[2]
    except CorruptBatch:
        largest = draw(small)
    fields = [0, 49 + len(data), -1, 2, 0, draw(st.sampled_from([0, 0, 0x10, 0x40])), count - 1, base_timestamp]
    fields += [largest, *draw(st.sampled_from([(-1, -1, -1), (7, 0, 5), (7, 0, -1)])), count]
    batch = bytearray(HEADER.pack(*fields) + data)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1]))):
        batch[draw(st.integers(0, 60))] ^= 1 << draw(st.integers(0, 7))
    crc = crc32c(memoryview(batch)[21:])
    if draw(st.integers(0, 9)):
        batch[17:21] = crc.to_bytes(4, "big")
    return batch[: draw(st.sampled_from([None, None, None, 60, -1]))], crc


@many
@given(
    batch=produced_batches(),
    place=st.tuples(st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1)),
    now_ms=st.sampled_from([1000, 2**40, 0, 2**63 - 1]),
    bounds=st.tuples(*[st.sampled_from([2**63 - 1, 2**62, 100, 0])] * 2),
    needs_keys=st.booleans(),
)
def test_a_batch_accepted_by_is_sound_passes_the_full_validation_unchanged(batch, place, now_ms, bounds, needs_keys):
    sent, crc = batch
    rules = (crc, now_ms, *bounds, needs_keys)
    is_sound = compiled.is_sound(sent, *rules)
    assert is_sound == interpreted.is_sound(sent, *rules)
    if not is_sound:
        return
    ours = bytearray(sent)
    RecordBatch(memoryview(ours)).set_offset_and_epoch(*place)
    policy = frozenset({"compact" if needs_keys else "delete"})
    config = TopicConfig(
        cleanup_policy=policy,
        message_timestamp_before_max_ms=bounds[0],
        message_timestamp_after_max_ms=bounds[1],
    )
    thorough = validate_produced(
        bytes(sent), config=config, base_offset=place[0], leader_epoch=place[1], now_ms=now_ms, thorough=True
    )
    assert bytes(thorough.data) == ours


@many
@given(
    data=st.binary(max_size=400),
    lengths=st.lists(st.one_of(st.integers(0, 80), int32), max_size=4),
    magic=st.sampled_from([0, 1, 2, 2, 2, 3, 255]),
    start=st.integers(-3, 60),
    cut=st.integers(0, 90),
    target=int64,
)
def test_compiled_and_interpreted_batch_walks_are_equal(data, lengths, magic, start, cut, target):
    """Buffers that start like batches, with whatever lengths, magic and fields chance gives them."""
    buffer = bytearray(data)
    position = max(start, 0)
    for length in lengths:
        if position + 17 > len(buffer):
            break
        buffer[position + 8 : position + 12] = struct.pack(">i", length)
        buffer[position + 16] = magic
        position += max(length, 0) + 12
    end = len(buffer) - cut
    same("find_batch", buffer, start, end, target)
    same("scan_batches", buffer, start, end)


@many
@given(data=st.binary(max_size=120), entries=st.integers(-1, 16), target=int64)
def test_compiled_and_interpreted_index_searches_are_equal(data, entries, target):
    same("offset_index_slot", data, entries, target)
    same("position_index_slot", data, entries, target)
    same("time_index_slot", data, entries, target)


@many
@given(data=st.one_of(st.binary(max_size=300), st.builds(bytes.__mul__, st.binary(max_size=40), st.integers(0, 400))))
def test_compiled_and_interpreted_xxhash_and_snappy_are_equal(data):
    same("xxh32", data)
    packed = same("snappy_compress", data)
    assert bytes(cramjam.snappy.decompress_raw(packed)) == data
