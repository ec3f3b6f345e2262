"""The golden partition directories: each scenario is a function that drives a recorder to a finished directory.

Segments are a few kilobytes and index files one kilobyte, so that every file is small and every rule applies somewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from tests.support.golden_recorder import Recorder
from tests.support.oracle_types import Codec, OracleRecord

SMALL = {"internal.segment.bytes": "2000", "segment.index.bytes": "1024", "index.interval.bytes": "200"}
TOPIC_ID = "AAAAAAAAQACAAAAAAAAAAQ"

SCENARIOS: dict[str, Callable[[Recorder], None]] = {}


def scenario(function: Callable[[Recorder], None]) -> Callable[[Recorder], None]:
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


def some_records(recorder: Recorder, first: int, count: int, *, keys: int = 7, size: int = 12) -> list[OracleRecord]:
    """Return records with every shape of key, value and headers. Their timestamps are shortly before the
    clock's time.
    """
    now = recorder.oracle.now_ms
    return [
        OracleRecord(
            key=None if n % 5 == 4 else b"key-%d" % (n % keys),
            value=(b"value-%d " % n) * (1 + n % 3) + b"." * size,
            timestamp=now - 40 * (n % 3) + n,
            headers=(((b"trace", b"%d" % n), (b"empty", b""), (b"none", None)) if n % 4 == 3 else ()),
        )
        for n in range(first, first + count)
    ]


def keyed(recorder: Recorder, *pairs: tuple[str, str | None]) -> list[OracleRecord]:
    """Return records for a compacted topic; a value of None is a tombstone."""
    now = recorder.oracle.now_ms
    return [
        OracleRecord(key=key.encode(), value=None if value is None else value.encode(), timestamp=now + n)
        for n, (key, value) in enumerate(pairs)
    ]


@scenario
def codecs(r: Recorder) -> None:
    """Write every codec in turn, with headers, null and empty fields, over several segments."""
    r.open(SMALL, topic_id=TOPIC_ID)
    first = 0
    for round_number in range(5):
        for codec in get_args(Codec):
            count = 1 + (first + round_number) % 6
            r.append(r.oracle.build_batch(some_records(r, first, count), codec=codec), leader_epoch=0)
            r.advance(7)
            first += count
    r.do("set_high_watermark", offset=first)
    r.end("shut_down")


@scenario
def log_append_time(r: Recorder) -> None:
    """Write with log append time: the broker rewrites max timestamp, attributes and CRC."""
    r.open({**SMALL, "message.timestamp.type": "LogAppendTime"}, topic_id=TOPIC_ID)
    first = 0
    for codec in get_args(Codec) * 3:
        r.append(r.oracle.build_batch(some_records(r, first, 4), codec=codec), leader_epoch=2)
        r.advance(250)
        first += 4
    r.end("shut_down")


@scenario
def timestamps_out_of_order(r: Recorder) -> None:
    """Write timestamps that go back and forth, equal ones, and missing ones, for tests of lookups by time."""
    r.open({**SMALL, "index.interval.bytes": "1"}, topic_id=TOPIC_ID)
    start = r.oracle.now_ms
    times = [100, 50, 50, 300, 10, 300, 299, 301, 0, 301, 301, 5, 700, 650, 700, 1, 702, 702, 701, 90]
    for n in range(40):
        codec = get_args(Codec)[n % 5]
        offsets = [(times[(n * 3 + i * 7) % len(times)] + 60 * (n // 10)) for i in range(1 + n % 4)]
        records = [OracleRecord(value=b"v%d" % n, timestamp=start + offset) for offset in offsets]
        r.append(r.oracle.build_batch(records, codec=codec))
    r.append(r.oracle.build_batch([OracleRecord(value=b"no time", timestamp=-1)]))
    r.end("shut_down")


@scenario
def recompressed(r: Recorder) -> None:
    """Write with a compression.type that differs from the producer's: the broker builds its own batches."""
    r.open({**SMALL, "compression.type": "lz4"}, topic_id=TOPIC_ID)
    first = 0
    for codec in get_args(Codec):
        r.append(r.oracle.build_batch(some_records(r, first, 5), codec=codec))
        first += 5
    r.end("shut_down")


@scenario
def idempotent(r: Recorder) -> None:
    """Write as idempotent producers: duplicates, gaps, more than five batches, a new epoch, a sequence wrap."""
    r.open(SMALL, topic_id=TOPIC_ID)

    def send(producer: int, sequence: int, count: int, epoch: int = 0) -> bytes:
        return r.oracle.build_batch(
            some_records(r, sequence % 1000, count), producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )

    for sequence in range(0, 24, 3):
        r.append(send(1, sequence, 3))
        r.append(send(2, sequence // 3, 1))
        r.advance(1000)
    r.append(send(1, 21, 3))  # a duplicate: the response has the first offsets, and nothing is written
    r.refuse("append_as_leader", records=send(1, 30, 3))
    r.refuse("append_as_leader", records=send(1, 0, 3))
    r.append(send(1, 0, 2, epoch=1))
    r.refuse("append_as_leader", records=send(1, 24, 3))
    r.append(send(3, 2**31 - 3, 3))
    r.append(send(3, 0, 2))
    r.append(send(4, 2**31 - 2, 4))  # its sequence wraps inside the batch
    r.do("take_snapshot")
    r.append(send(4, 2, 1))
    r.end("shut_down")


def transactions_into(r: Recorder) -> None:
    sequences: dict[int, int] = {}

    def write(producer: int, count: int, epoch: int = 0) -> None:
        first = sequences.get(producer, 0)
        sequences[producer] = first + count
        settings: Any = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": first}
        r.append(
            r.oracle.build_batch(some_records(r, first, count), transactional=True, codec="snappy", **settings),
            leader_epoch=1,
        )

    def finish(producer: int, *, commit: bool, epoch: int = 0) -> None:
        marker = r.oracle.end_transaction_marker(producer, epoch, commit=commit, coordinator_epoch=5)
        r.append(marker, leader_epoch=1, origin="COORDINATOR")

    write(10, 3)
    write(11, 2)
    r.append(r.oracle.build_batch(some_records(r, 0, 4)), leader_epoch=1)
    finish(10, commit=True)
    write(12, 9)
    r.advance(100)
    write(11, 7)
    finish(12, commit=False)
    for _ in range(4):
        write(12, 8)
        write(11, 2)
    finish(12, commit=False)
    finish(11, commit=True)
    r.advance(100)
    write(13, 6)
    write(12, 5)
    r.append(r.oracle.build_batch(some_records(r, 50, 12)), leader_epoch=1)
    finish(12, commit=False)
    write(13, 6)


@scenario
def transactions(r: Recorder) -> None:
    """Write two committed transactions, three aborted ones and an open one, interleaved and over segments."""
    r.open(SMALL, topic_id=TOPIC_ID)
    transactions_into(r)
    r.do("set_high_watermark", offset=r.log.state().log_end_offset)
    r.end("shut_down")


@scenario
def rolls(r: Recorder) -> None:
    """A segment ends by size, by age of its records, because an index is full, and by an explicit roll."""
    config = {**SMALL, "segment.ms": "10000", "segment.index.bytes": "96", "index.interval.bytes": "100"}
    r.open(config, topic_id=TOPIC_ID)
    for n in range(20):  # rolled by a full time index of 96 / 12 entries
        r.append(r.oracle.build_batch(some_records(r, n, 1, size=40)))
        r.advance(10)
    r.advance(20_000)
    r.append(r.oracle.build_batch(some_records(r, 20, 1)))  # rolled by age
    r.append(r.oracle.build_batch(some_records(r, 21, 5, size=300)))  # rolled by size
    r.do("roll")
    r.append(r.oracle.build_batch(some_records(r, 26, 2)))
    r.do("roll")
    r.do("roll")  # rolling an empty segment
    r.end("shut_down")


def keys_into(r: Recorder, rounds: int, name: str = "once") -> None:
    """Write some keys again and again, and other keys once; every second of those gets a tombstone later."""
    for n in range(rounds):
        value = f"value {n}"
        pairs: list[tuple[str, str | None]] = [(f"key-{(n + i) % 9}", value) for i in range(3)]
        if n % 4 == 1:
            pairs.append((f"{name}-{n // 4}", value))
        if n % 8 == 3:
            pairs.append((f"{name}-{n // 4}", None))
        r.append(r.oracle.build_batch(keyed(r, *pairs), codec=get_args(Codec)[n % 5]))
        r.advance(10)


COMPACT = {**SMALL, "cleanup.policy": "compact", "delete.retention.ms": "60000", "file.delete.delay.ms": "1000"}


def clean_all(r: Recorder, last_clean_offset: int | None) -> int:
    """Let everything be replicated, then clean. Return the offset where the next cleaning begins."""
    r.do("set_high_watermark", offset=r.log.state().log_end_offset)
    return int(r.do("clean", last_clean_offset=last_clean_offset).to_offset)


@scenario
def compacted(r: Recorder) -> None:
    """Compact twice within delete.retention.ms: tombstones are kept, with a delete horizon."""
    r.open(COMPACT, topic_id=TOPIC_ID)
    keys_into(r, 30)
    first = clean_all(r, None)
    keys_into(r, 16, "later")
    clean_all(r, first)
    r.advance(2000)
    r.end("shut_down")


@scenario
def compacted_past_delete_horizon(r: Recorder) -> None:
    """Compact again after delete.retention.ms: tombstones are removed, and their offsets are not used again."""
    r.open(COMPACT, topic_id=TOPIC_ID)
    keys_into(r, 30)
    first = clean_all(r, None)
    r.advance(120_000)
    keys_into(r, 24, "later")
    second = clean_all(r, first)
    r.advance(120_000)
    keys_into(r, 4, "last")
    r.do("roll")
    clean_all(r, second)
    r.advance(2000)
    r.end("shut_down")


@scenario
def compacted_transactions(r: Recorder) -> None:
    """Compact transactions: aborted records are removed at once, markers after their delete horizon."""
    r.open(COMPACT, topic_id=TOPIC_ID)
    sequences = {20: 0, 21: 0}
    cleaned = None
    for turn in range(3):
        for n in range(8):
            pairs = [(f"key-{(n + i) % 5}", f"value {turn}.{n}") for i in range(2)]
            pairs += [(f"once-{turn}-{n}", "kept")] if n % 4 == 0 else []
            producer = 20 + n % 2
            settings: Any = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
            r.append(r.oracle.build_batch(keyed(r, *pairs), transactional=True, **settings))
            sequences[producer] += len(pairs)
            r.append(r.oracle.end_transaction_marker(producer, 0, commit=n % 3 != 1), origin="COORDINATOR")
            r.advance(10)
        r.do("roll")
        cleaned = clean_all(r, cleaned)
        r.advance(70_000)
    r.end("shut_down")


@scenario
def records_deleted(r: Recorder) -> None:
    """Delete records up to the middle of a batch in the middle of a segment."""
    r.open({**SMALL, "file.delete.delay.ms": "1000"}, topic_id=TOPIC_ID)
    for n in range(0, 60, 3):
        r.append(r.oracle.build_batch(some_records(r, n, 3)), leader_epoch=n // 10)
        r.do("set_high_watermark", offset=n + 3)
    r.refuse("delete_records", before_offset=1000)
    r.do("delete_records", before_offset=40)
    r.do("delete_old_segments")
    r.advance(1000)
    r.end("shut_down")


@scenario
def retained(r: Recorder) -> None:
    """Apply retention by time, then by size."""
    config = {**SMALL, "retention.ms": "50000", "file.delete.delay.ms": "1000"}
    r.open(config, topic_id=TOPIC_ID)
    for n in range(0, 90, 3):
        r.append(r.oracle.build_batch(some_records(r, n, 3)), leader_epoch=n // 20)
        r.do("set_high_watermark", offset=n + 3)
        r.advance(2500)
    r.do("delete_old_segments")
    r.do("update_config", config={**config, "retention.bytes": "2000"})
    r.do("delete_old_segments")
    r.advance(1000)
    r.end("shut_down")


@scenario
def leader_epochs(r: Recorder) -> None:
    """Write a follower's log: several epochs, two truncations, and the leader of the next epoch."""
    r.open(SMALL, topic_id=TOPIC_ID)

    def replicate(first: int, count: int, epoch: int) -> None:
        batch = r.oracle.build_batch(some_records(r, first, count), base_offset=first, leader_epoch=epoch)
        r.do("append_as_follower", records=batch, leader_epoch=epoch)

    for n in range(0, 40, 4):
        replicate(n, 4, n // 12)
    r.do("truncate_to", offset=28)
    replicate(28, 6, 5)
    replicate(34, 6, 6)
    replicate(40, 20, 6)
    r.do("truncate_to", offset=34)
    r.do("assign_epoch", epoch=9, offset=34)
    r.append(r.oracle.build_batch(some_records(r, 34, 5)), leader_epoch=9)
    r.do("set_high_watermark", offset=39)
    r.end("shut_down")


@scenario
def truncated_fully(r: Recorder) -> None:
    """A follower too far behind starts again at the leader's log start."""
    r.open(SMALL, topic_id=TOPIC_ID)
    for n in range(0, 30, 3):
        r.append(r.oracle.build_batch(some_records(r, n, 3)), leader_epoch=1)
    r.do("truncate_fully_and_start_at", offset=5000)
    batch = r.oracle.build_batch(some_records(r, 0, 3), base_offset=5000, leader_epoch=4)
    r.do("append_as_follower", records=batch, leader_epoch=4)
    r.advance(60_000)
    r.end("shut_down")
