"""L13: which records survive compaction, and how their batches are written again."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.compaction import KeyScan, LastRecord, LatestOffsets, SurvivingRecords
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch, split_batches
from tailrace.records.builder import BatchBuilder
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType, iter_records
from tests.support.batches import batch, end_marker

NOW_MS = 10_000
RETENTION_MS = 500
CODECS = pytest.mark.parametrize("codec", list(Codec))


def placed(offset: int, *records: tuple[bytes | None, bytes | None], **fields: Any) -> bytes:
    return bytes(batch(*records, base_offset=offset, **fields))


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    data = end_marker(producer_id, commit=commit)
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def compact(
    *batches: bytes,
    now_ms: int = NOW_MS,
    start_offset: int = 0,
    end_offset: int = 10**9,
    slots: int = 1000,
    aborted: list[AbortedTransaction] | None = None,
    last_records: dict[int, LastRecord] | None = None,
    retain_legacy_deletes: bool = True,
) -> bytes:
    """Run both passes over these batches, the first one from start_offset on."""
    data = b"".join(batches)
    latest = LatestOffsets(slots)
    transactions = [CleanedTransactions(), CleanedTransactions()]
    for one in transactions:
        one.add_aborted(aborted or [])
    scan = KeyScan(latest, start_offset, transactions[0])
    scanned = scan.add(data, 0, len(data))
    assert scan.is_full or scanned == len(data)
    survivors = SurvivingRecords(
        latest,
        transactions=transactions[1],
        last_records=last_records or {},
        end_offset=end_offset,
        now_ms=now_ms,
        delete_retention_ms=RETENTION_MS,
    )
    assert survivors.add(data, 0, len(data), retain_legacy_deletes=retain_legacy_deletes) == len(data)
    out, written = survivors.take()
    kept = list(split_batches(bytes(out)))
    assert [(one.size, one.last_offset, one.max_timestamp) for one in kept] == written
    assert survivors.records_kept == sum(one.record_count for one in kept)
    for one in kept:
        one.check()
    return bytes(out)


def batches_of(data: bytes) -> list[RecordBatch]:
    return list(split_batches(data))


def records_of(data: bytes) -> list[Record]:
    return [record for one in batches_of(data) for record in iter_records(one)]


def contents(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(data)]


# Keys


@CODECS
def test_the_latest_record_of_each_key_keeps_its_offset(codec: Codec) -> None:
    first = placed(0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), codec=codec)
    second = placed(3, (b"c", b"1"), (b"b", b"2"), codec=codec)
    kept = compact(first, second)
    assert contents(kept) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2")]
    assert [one.codec for one in batches_of(kept)] == [codec, codec]


@CODECS
def test_a_batch_whose_records_all_stay_is_copied_unchanged(codec: Codec) -> None:
    data = placed(7, (b"a", b"1"), (b"b", b""), codec=codec, producer_id=3, sequence=4, leader_epoch=9)
    assert compact(data) == data


def test_a_batch_that_loses_records_keeps_its_offsets_and_its_producer() -> None:
    data = placed(
        5, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", b"2"), timestamp=[9, 8, 7, 6], producer_id=3, sequence=40
    )
    last = placed(9, (b"b", b"3"))
    one = batches_of(compact(data, last))[0]
    assert (one.base_offset, one.last_offset, one.record_count) == (5, 8, 1)
    assert (one.producer_id, one.producer_epoch, one.base_sequence, one.last_sequence) == (3, 0, 40, 43)
    assert (one.base_timestamp, one.max_timestamp) == (7, 7)


def test_records_without_a_key_are_removed() -> None:
    assert contents(compact(placed(0, (None, b"1"), (b"a", b"1"), (None, None)))) == [(1, b"a", b"1")]


def test_records_before_the_dirty_range_are_removed_if_their_key_is_in_it() -> None:
    clean = placed(0, (b"a", b"1"), (b"b", b"1"))
    dirty = placed(2, (b"b", b"2"))
    assert contents(compact(clean, dirty, start_offset=2)) == [(0, b"a", b"1"), (2, b"b", b"2")]


def test_records_after_the_end_of_a_full_map_are_kept() -> None:
    """Three keys fill it: the scan ends before the fourth, and nothing from there on is judged."""
    data = [placed(0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2")), placed(3, (b"c", b"1"), (b"d", b"1"), (None, b"x"))]
    assert contents(compact(*data, slots=4)) == [
        (1, b"b", b"1"),
        (2, b"a", b"2"),
        (3, b"c", b"1"),
        (4, b"d", b"1"),
        (5, None, b"x"),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_random_records_are_compacted_like_a_dictionary(seed: int) -> None:
    chance = random.Random(seed)
    data, latest, offset = [], {}, 0
    for _ in range(60):
        builder = BatchBuilder(base_offset=offset, codec=chance.choice(list(Codec)))
        for _ in range(chance.choice([1, 2, 20])):
            key, value = b"%d" % chance.randrange(50), b"%d" % offset
            builder.append(chance.randrange(1000), key, value, offset=offset)
            latest[key] = (offset, key, value)
            offset += chance.choice([1, 1, 9])
        data.append(builder.build())
    once = compact(*data)
    assert contents(once) == sorted(latest.values())
    assert compact(once) == once


# Tombstones


@CODECS
def test_a_tombstone_gets_a_delete_horizon_and_is_removed_after_it(codec: Codec) -> None:
    data = placed(0, (b"a", b"1"), (b"a", None), (b"b", b"1"), timestamp=[7, 8, 9], codec=codec)
    first = compact(data)
    (one,) = batches_of(first)
    assert (one.delete_horizon_ms, one.max_timestamp) == (NOW_MS + RETENTION_MS, 9)
    assert [(record.offset, record.timestamp) for record in iter_records(one)] == [(1, 8), (2, 9)]
    assert compact(first, now_ms=NOW_MS + RETENTION_MS - 1) == first
    later = compact(first, now_ms=NOW_MS + RETENTION_MS)
    assert contents(later) == [(2, b"b", b"1")]
    assert batches_of(later)[0].delete_horizon_ms == NOW_MS + RETENTION_MS


def test_a_delete_horizon_is_set_only_once() -> None:
    first = compact(placed(0, (b"a", None), (b"b", b"1")))
    later = compact(first, placed(2, (b"b", b"2")), now_ms=NOW_MS + 100)
    assert batches_of(later)[0].delete_horizon_ms == NOW_MS + RETENTION_MS


# Transactions


def transaction(producer_id: int, offset: int, key: bytes, codec: Codec = Codec.NONE) -> bytes:
    return placed(offset, (key, b"%d" % offset), producer_id=producer_id, sequence=0, transactional=True, codec=codec)


@CODECS
def test_data_of_aborted_transactions_is_removed(codec: Codec) -> None:
    data = [
        transaction(1, 0, b"a", codec),
        transaction(2, 1, b"b", codec),
        marker(2, 1, commit=False),
        marker(3, 2, commit=True),
    ]
    kept = compact(*data, aborted=[AbortedTransaction(1, 0, 2, 1)])
    assert [one.base_offset for one in batches_of(kept)] == [1, 2, 3]


def test_an_aborted_record_does_not_replace_the_one_before() -> None:
    data = [placed(0, (b"a", b"old")), transaction(1, 1, b"a"), marker(2, 1, commit=False)]
    kept = compact(*data, aborted=[AbortedTransaction(1, 1, 2, 1)])
    assert contents(kept)[0] == (0, b"a", b"old")


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_without_data_gets_a_delete_horizon_and_is_removed_after_it(commit: bool) -> None:
    alone = marker(5, 1, commit=commit)
    first = compact(alone)
    (one,) = batches_of(first)
    assert one.is_control
    assert one.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert [record.timestamp for record in iter_records(one)] == [1_000]
    assert compact(first, now_ms=NOW_MS + RETENTION_MS) == b""


def test_a_marker_is_unchanged_while_data_of_its_transaction_is_left() -> None:
    data = transaction(1, 0, b"a") + marker(1, 1, commit=True)
    assert compact(data) == data


# What must not be forgotten


@CODECS
def test_the_emptied_last_batch_of_a_known_producer_keeps_its_header(codec: Codec) -> None:
    data = placed(3, (b"a", b"1"), (b"a", b"2"), producer_id=7, sequence=10, codec=codec, leader_epoch=2, timestamp=77)
    over = placed(5, (b"a", b"3"))
    one = batches_of(compact(data, over, last_records={7: LastRecord(4, 0)}))[0]
    assert (one.base_offset, one.last_offset, one.record_count, one.size) == (3, 4, 0, 61)
    assert (one.producer_id, one.producer_epoch, one.last_sequence, one.leader_epoch) == (7, 0, 11, 2)
    assert (one.base_timestamp, one.max_timestamp, one.attributes) == (-1, 77, 0)
    assert contents(compact(data, over, last_records={7: LastRecord(2, 0)})) == [(5, b"a", b"3")]


def test_the_emptied_last_batch_of_an_aborted_transaction_keeps_its_header() -> None:
    data = transaction(1, 0, b"a") + marker(1, 1, commit=False)
    kept = compact(data, aborted=[AbortedTransaction(1, 0, 1, 1)], last_records={1: LastRecord(0, 0)})
    assert [(one.base_offset, one.record_count) for one in batches_of(kept)] == [(0, 0), (1, 1)]


def test_the_last_marker_of_a_producer_without_data_keeps_its_header() -> None:
    old = compact(marker(1, 7, commit=True))
    for epoch, left in [(0, [(1, 0)]), (1, [])]:
        kept = compact(old, now_ms=NOW_MS + RETENTION_MS, last_records={7: LastRecord(None, epoch)})
        assert [(one.base_offset, one.record_count) for one in batches_of(kept)] == left
    # An empty one is kept for the same reason again, and without it goes.
    empty = compact(old, now_ms=NOW_MS + RETENTION_MS, last_records={7: LastRecord(None, 0)})
    assert compact(empty, last_records={7: LastRecord(None, 0)}) == empty
    assert compact(empty) == b""


def test_the_emptied_last_batch_of_the_range_keeps_its_header() -> None:
    data = placed(0, (b"a", b"1")), placed(1, (None, b"x"), (None, b"y"))
    kept = batches_of(compact(*data, end_offset=3))
    assert [(one.last_offset, one.record_count) for one in kept] == [(0, 1), (2, 0)]


# Formats 0 and 1


def messages(offset: int, magic: int, codec: Codec, *records: tuple[bytes | None, bytes | None]) -> bytes:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP
    return build_messages(
        [
            Record(offset + number, 70 + number if magic else -1, kind, key, value)
            for number, (key, value) in enumerate(records)
        ],
        magic=magic,
        codec=codec,
    )


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_messages_are_compacted_into_v2_batches(magic: int, codec: Codec) -> None:
    old = messages(0, magic, codec, (b"a", b"1"), (None, b"x"), (b"b", None), (b"a", b"2"))
    kept = compact(old, placed(4, (b"c", b"1")))
    assert contents(kept) == [(2, b"b", None), (3, b"a", b"2"), (4, b"c", b"1")]
    first, *_, last = batches_of(kept)
    assert (first.codec, first.delete_horizon_ms) == (codec, NOW_MS + RETENTION_MS)
    assert last.codec == Codec.NONE
    assert next(record.timestamp for record in iter_records(first)) == (72 if magic else -1)
    assert contents(compact(old, retain_legacy_deletes=False)) == [(3, b"a", b"2")]


def test_an_emptied_old_message_at_the_end_of_the_range_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="cannot be emptied"):
        compact(messages(0, 1, Codec.NONE, (None, b"x")), end_offset=1)


# Damage


@pytest.mark.parametrize("position", [16, 17, 22, 40, 60, 61, 70])
@pytest.mark.parametrize("kind", ["plain", "compressed", "transactional", "old"])
def test_a_damaged_batch_is_refused_with_its_position(kind: str, position: int) -> None:
    fields: dict[str, Any] = {
        "compressed": {"codec": Codec.ZSTD},
        "transactional": {"producer_id": 1, "sequence": 0, "transactional": True},
    }.get(kind, {})
    good = placed(0, (b"first", b"x" * 30))
    bad = placed(1, (b"second", b"y" * 30), **fields)
    if kind == "old":
        bad = messages(1, 1, Codec.NONE, (b"second", b"y" * 50))
    bad = bytearray(bad)
    bad[position] ^= 0x55
    with pytest.raises(CorruptBatch) as refused:
        compact(good, bytes(bad), placed(2, (b"third", b"")))
    assert refused.value.position == len(good)


def test_a_batch_that_is_cut_short_is_left_for_more_bytes() -> None:
    first = placed(0, (b"a", b"1"))
    data = first + placed(1, (b"b", b"1"), codec=Codec.GZIP)
    scan = KeyScan(LatestOffsets(10), 0, CleanedTransactions())
    for end in range(len(data)):
        assert scan.add(data, 0, end) == (0 if end < len(first) else len(first))
