"""The map of latest offsets and the filter, compiled and interpreted: the same answers, on good bytes and bad."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.log.compaction import cleaner_kernels
from tailrace.log.compaction.cleaner_kernels import SLOT_SIZE, LatestOffsets
from tailrace.records.batch import CorruptBatch, RecordBatch, split_batches
from tailrace.records.builder import BatchBuilder, assemble_batch
from tailrace.records.kernels import encode_record
from tailrace.records.record import TimestampType
from tests.support.interpreted import interpreted as interpreted_form

INTERPRETED = interpreted_form(cleaner_kernels)
BOTH = pytest.mark.parametrize("kernels", [cleaner_kernels, INTERPRETED], ids=["as installed", "interpreted"])


def new_filter(kernels: Any, latest: Any, **changes: Any) -> Any:
    fields = {"now_ms": 1000, "delete_retention_ms": 500, "end_offset": -1, "last_offsets": {}, **changes}
    return kernels.RecordFilter(latest, **fields)


def random_batch(chance: random.Random, base_offset: int) -> bytes:
    builder = BatchBuilder(
        base_offset=base_offset,
        timestamp_type=chance.choice([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]),
        log_append_time_ms=900,
        **chance.choice([{}, {"producer_id": 5, "producer_epoch": 1, "base_sequence": 3}]),
        delete_horizon_ms=chance.choice([None, None, 999, 1001]),
    )
    offset = base_offset
    for _ in range(chance.choice([1, 3, 40])):
        key = chance.choice([None, *[b"key %d" % chance.randrange(30)] * 9])
        value = chance.choice([None, b"", chance.randbytes(chance.choice([1, 60, 300]))])
        headers = chance.choice([(), (), (("h", b"v"), ("", None)), (("größe", b""),)])
        builder.append(chance.choice([-1, 7, 10**12]), key, value, headers, offset=offset)
        offset += chance.choice([1, 1, 70])
    return builder.build(last_offset=offset)


# The map


@BOTH
def test_the_hash_is_siphash_2_4_with_128_bits(kernels: Any) -> None:
    """The first vectors that its authors published: the key is 00…0f, the text 00, 01, 02, …"""
    latest = kernels.LatestOffsets(100, salt=bytes(range(16)))
    assert latest.digest(b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert latest.digest(bytes(range(1))).hex() == "da87c1d86b99af44347659119b22fc45"
    assert latest.digest(bytes(range(2))).hex() == "8177228da4a45dc7fca38bdef60affe4"
    assert latest.digest(bytes(range(3))).hex() == "9c70b60c5267a94e5f33b6b02985ed51"


@given(st.binary(max_size=300), st.binary(min_size=16, max_size=16))
@settings(max_examples=50, deadline=None)
def test_compiled_and_interpreted_hashes_are_equal(key: bytes, salt: bytes) -> None:
    assert LatestOffsets(10, salt=salt).digest(key) == INTERPRETED.LatestOffsets(10, salt=salt).digest(key)


@BOTH
def test_the_map_is_a_dictionary_that_grows_up_to_its_limit(kernels: Any) -> None:
    chance = random.Random(3)
    latest = kernels.LatestOffsets(5000, 0.9)
    model: dict[bytes, int] = {}
    small = latest.memory_bytes
    for offset in range(9000):
        key = b"%d" % chance.randrange(4400)
        latest.put(key, offset)
        model[key] = offset
    assert (latest.size, latest.limit, latest.latest_offset) == (len(model), 4500, 8999)
    assert small < latest.memory_bytes == 5001 * 24
    assert {key: latest.get(key) for key in model} == model
    assert latest.get(b"never put") == -1


@BOTH
def test_a_full_map_refuses_another_key(kernels: Any) -> None:
    latest = kernels.LatestOffsets(4, 1.0)
    for number in range(4):
        latest.put(b"%d" % number, number)
    with pytest.raises(ValueError, match="full: 4 keys in 4 slots"):
        latest.put(b"more", 9)
    assert latest.get(b"more") == -1


def test_a_map_without_room_for_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="give more memory"):
        LatestOffsets(1, 0.9)


def test_put_records_starts_at_an_offset_and_ends_when_the_map_is_full() -> None:
    builder = BatchBuilder(base_offset=10)
    for number in range(8):
        builder.append(0, None if number == 3 else b"%d" % number, b"v")
    batch = RecordBatch(memoryview(builder.build()))
    latest = LatestOffsets(4, 0.9)
    payload = bytes(batch.payload)
    # 10 is before the start, 13 has no key; 11, 12 and 14 fill the map, and 15 is too much.
    assert latest.put_records(payload, 0, len(payload), 8, 10, 11) == 5
    assert [latest.get(b"%d" % number) for number in range(6)] == [-1, 11, 12, -1, 14, -1]
    assert latest.latest_offset == 14


# The filter


@pytest.mark.parametrize("seed", range(30))
def test_compiled_and_interpreted_keep_the_same_bytes(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray()
    offset = 0
    while len(data) < 20_000:
        batch = random_batch(chance, offset)
        data += batch
        offset = RecordBatch(memoryview(batch)).next_offset
    data += random_batch(chance, offset)[:-1]  # cut short: not taken
    results = []
    for kernels in (cleaner_kernels, INTERPRETED):
        latest = kernels.LatestOffsets(25)
        put = latest.put_batches(data, 0, len(data), 500)
        kernel = new_filter(kernels, latest, end_offset=offset, last_offsets={5: offset - 1})
        end = kernel.put_batches(data, 0, len(data))
        counts = (kernel.records_read, kernel.records_kept, kernel.records_without_key)
        results.append((put, latest.size, end, counts, bytes(kernel.out[: kernel.out_size]), kernel.written))
    assert results[0] == results[1]
    _, _, end, _, out, written = results[0]
    assert end < len(data)
    kept = list(split_batches(out))
    for batch in kept:
        batch.check()
    assert [(batch.size, batch.last_offset, batch.max_timestamp) for batch in kept] == written


@BOTH
@pytest.mark.parametrize("append_time", [None, 5000])
@pytest.mark.parametrize("horizon", [None, 7000])
def test_rewritten_records_have_the_bytes_of_batch_builder(
    kernels: Any, append_time: int | None, horizon: int | None
) -> None:
    fields: dict[str, Any] = {"base_offset": 40, "delete_horizon_ms": horizon, "leader_epoch": 4}
    if append_time is not None:
        fields |= {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": append_time}
    original, expected = BatchBuilder(**fields), BatchBuilder(**fields)
    latest = kernels.LatestOffsets(100)
    for offset in range(40, 100):
        key, value = b"k%d" % offset, b"v" * (offset * 3)
        headers = [("n", None), ("ä", b"x")][: offset % 3]
        original.append(1000 - offset, key, value, headers, offset=offset)
        is_kept = offset % 4 == 1
        latest.put(key, offset if is_kept else 100)
        if is_kept:
            expected.append(1000 - offset if append_time is None else append_time, key, value, headers, offset=offset)
    data = original.build()
    kernel = new_filter(kernels, latest)
    assert kernel.put_batches(data, 0, len(data)) == len(data)
    assert bytes(kernel.out[: kernel.out_size]) == expected.build(last_offset=99)


@BOTH
def test_rewritten_records_have_kafkas_canonical_encoding(kernels: Any) -> None:
    """Lengths with a byte too many, other lengths than -1 for nothing, a header key that is not UTF-8."""
    odd = bytes.fromhex("00" + "00" + "8200" + "02" + "61" + "05" + "02" + "02" + "ff" + "03")
    first = bytearray()
    encode_record(first, 0, 0, b"gone", b"", ())
    data = assemble_batch(
        bytes(first) + bytes([len(odd) * 2]) + odd,
        base_offset=0,
        last_offset=1,
        base_timestamp=77,
        max_timestamp=77,
        attributes=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        leader_epoch=-1,
        record_count=2,
    )
    latest = kernels.LatestOffsets(10)
    latest.put(b"gone", 5)
    kernel = new_filter(kernels, latest, now_ms=0, delete_retention_ms=2**63 - 1)
    kernel.put_batches(data, 0, len(data))
    expected = BatchBuilder(delete_horizon_ms=2**63 - 1)
    expected.append(77, b"a", None, [("\ufffd", None)], offset=1)
    assert bytes(kernel.out[: kernel.out_size]) == expected.build()


def test_a_delete_horizon_beyond_64_bits_is_not_set() -> None:
    builder = BatchBuilder()
    builder.append(5, b"k", None)
    latest = LatestOffsets(10)
    latest.put(b"k", 0)
    kernel = new_filter(cleaner_kernels, latest, now_ms=1, delete_retention_ms=2**63 - 1)
    data = builder.build()
    kernel.put_batches(data, 0, len(data))
    assert bytes(kernel.out[: kernel.out_size]) == data


@BOTH
def test_only_plain_batches_are_handled_by_the_kernel(kernels: Any) -> None:
    latest = kernels.LatestOffsets(10)
    plain = BatchBuilder()
    plain.append(0, b"k", b"v")
    good = bytearray(plain.build())
    for position, value in [(16, 1), (22, 1), (22, 0x10), (22, 0x20), (30, 1)]:
        bad = bytearray(good)
        bad[position] ^= value
        assert latest.put_batches(good + bad, 0, 2 * len(good), 0) == (len(good), 1, False)
        assert new_filter(kernels, latest).put_batches(good + bad, 0, 2 * len(good)) == len(good)


@BOTH
def test_a_range_outside_the_bytes_is_refused(kernels: Any) -> None:
    latest = kernels.LatestOffsets(10)
    kernel = new_filter(kernels, latest)
    for start, end in [(-1, 5), (0, 71), (6, 5)]:
        with pytest.raises(ValueError, match="not inside the 70 bytes"):
            latest.put_batches(bytes(70), start, end, 0)
        with pytest.raises(ValueError, match="not inside the 70 bytes"):
            latest.put_records(bytes(70), start, end, 1, 0, 0)
        with pytest.raises(ValueError, match="not inside the 70 bytes"):
            kernel.put_batches(bytes(70), start, end)
        with pytest.raises(ValueError, match="not inside the 70 bytes"):
            kernel.judge(bytes(70), start, end, 1, 0, True)


@pytest.mark.parametrize("seed", range(40))
def test_broken_records_are_refused_at_every_position(seed: int) -> None:
    """Any byte changed, any cut: an answer or CorruptBatch, the same from both, and never a byte read out of bounds."""
    chance = random.Random(seed)
    batch = RecordBatch(memoryview(random_batch(chance, 0)))
    for _ in range(25):
        payload = bytearray(batch.payload)
        count = batch.record_count
        for _ in range(chance.choice([1, 1, 3])):
            payload[chance.randrange(len(payload))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        if chance.random() < 0.3:
            del payload[chance.randrange(1, len(payload) + 1) :]
        if chance.random() < 0.2:
            count = chance.choice([-1, 0, count - 1, count + 1, 2**31 - 1])
        outcomes = [_outcome(kernels, payload, count, batch) for kernels in (cleaner_kernels, INTERPRETED)]
        assert outcomes[0] == outcomes[1]


def _outcome(kernels: Any, payload: bytearray, count: int, batch: RecordBatch) -> Any:
    latest = kernels.LatestOffsets(20)
    try:
        read = latest.put_records(payload, 0, len(payload), count, batch.base_offset, 0)
        kernel = new_filter(kernels, latest)
        judged = kernel.judge(payload, 0, len(payload), count, batch.base_offset, True)
        rewritten = kernel.rewrite(
            payload, 0, len(payload), count, batch.base_timestamp, batch.max_timestamp, batch.is_log_append_time, -1
        )
    except CorruptBatch as error:
        return str(error)
    return read, judged, rewritten


@BOTH
@pytest.mark.parametrize("parts", [1, 7])
def test_maps_that_are_split_and_merged_equal_one_map_of_all_records(kernels: Any, parts: int) -> None:
    """Several maps of disjoint ranges, merged part by part, equal one map of all records."""
    whole = kernels.LatestOffsets(10_000)
    pieces = [kernels.LatestOffsets(10_000) for _ in range(3)]
    for offset in range(6_000):
        key = b"%d" % (offset * 7919 % 2_500)
        whole.put(key, offset)
        pieces[offset // 2_000].put(key, offset)
    merged = [kernels.LatestOffsets(10_000) for _ in range(parts)]
    for piece in reversed(pieces):
        split = piece.split(parts)
        assert sum(map(len, split)) == piece.size * SLOT_SIZE
        for part, entries in enumerate(split):
            merged[part].merge(entries)
    assert sum(part.size for part in merged) == whole.size == 2_500
    strangers = kernels.LatestOffsets(100)
    strangers.put(b"never", 5)
    strangers.put(b"17", 1)
    answer = kernels.LatestOffsets(10_000)
    for part, entries in enumerate(strangers.split(parts)):
        answer.merge(merged[part].look_up(entries))
    assert (answer.size, answer.get(b"never"), answer.get(b"17")) == (1, -1, whole.get(b"17"))
    for part, entries in enumerate(pieces[0].split(parts)):
        answer.merge(merged[part].look_up(entries))
    asked = [key for key in (b"%d" % number for number in range(2_500)) if pieces[0].get(key) >= 0]
    assert [answer.get(key) for key in asked] == [whole.get(key) for key in asked]
    assert len(asked) == 2_000


@BOTH
def test_invalid_entries_and_full_maps_are_refused(kernels: Any) -> None:
    full = kernels.LatestOffsets(10, 0.5)
    other = kernels.LatestOffsets(100)
    for number in range(6):
        other.put(b"%d" % number, number)
    with pytest.raises(ValueError, match="the offset map is full: 5 keys in 10 slots"):
        full.merge(other.split(1)[0])
    for call in (full.merge, full.look_up):
        with pytest.raises(ValueError, match="7 bytes are not a multiple of 24"):
            call(bytes(7))
    with pytest.raises(ValueError, match="0 is not a valid number of parts"):
        full.split(0)
