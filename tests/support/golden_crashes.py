"""More golden scenarios: directories after a crash, and formats from before Kafka 0.11.

Each scenario is also recovered by Kafka: the directory is opened as after an unclean stop, closed, and kept beside the
first as `recovered`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.golden_recorder import Recorder
from tests.support.golden_scenarios import (
    COMPACT,
    SMALL,
    TOPIC_ID,
    keys_into,
    scenario,
    some_records,
    transactions_into,
)
from tests.support.oracle_types import Codec, OracleRecord, TimestampType

LOG_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


def last_segment(r: Recorder) -> Path:
    return max(r.directory.glob("*.log"))


def segment_files(directory: Path, base_offset: int) -> list[Path]:
    return [path for suffix in LOG_SUFFIXES if (path := directory / f"{base_offset:020}{suffix}").exists()]


@scenario
def crashed(r: Recorder) -> None:
    """Crash during transactions: the active segment has indexes of full size, and its end was never flushed."""
    r.open(SMALL, topic_id=TOPIC_ID)
    transactions_into(r)
    r.end("crash")


@scenario
def crashed_torn_tail(r: Recorder) -> None:
    """Cut the last batch in the middle."""
    r.open(SMALL, topic_id=TOPIC_ID)
    transactions_into(r)
    r.end("crash")
    r.change("the last .log is cut 30 bytes before its end")
    path = last_segment(r)
    path.write_bytes(path.read_bytes()[:-30])


@scenario
def crashed_zero_tail(r: Recorder) -> None:
    """Append zeros after the last batch, as a file system leaves pages that it never wrote."""
    r.open(SMALL, topic_id=TOPIC_ID)
    transactions_into(r)
    r.end("crash")
    r.change("500 zero bytes follow in the last .log")
    with last_segment(r).open("ab") as file:
        file.write(bytes(500))


@scenario
def crashed_bad_crc(r: Recorder) -> None:
    """Change a byte in the second batch of the active segment: the log is cut there."""
    r.open({**SMALL, "internal.segment.bytes": "100000"}, topic_id=TOPIC_ID)
    transactions_into(r)
    r.end("crash")
    path = last_segment(r)
    data = bytearray(path.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 70] ^= 0xFF
    r.change(f"byte {second + 70} of the last .log is flipped")
    path.write_bytes(data)


@scenario
def crashed_without_indexes(r: Recorder) -> None:
    """Remove index files and snapshots: all are rebuilt from the log."""
    r.open(SMALL, topic_id=TOPIC_ID)
    transactions_into(r)
    r.end("crash")
    r.change("every .index, .timeindex, .txnindex and .snapshot is removed")
    for path in r.directory.iterdir():
        if path.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            path.unlink()


@scenario
def crashed_preallocated(r: Recorder) -> None:
    """Crash with preallocate=true: the `.log` has its full size, with zeros after the records."""
    r.open({**SMALL, "preallocate": "true"}, topic_id=TOPIC_ID)
    for n in range(0, 40, 4):
        r.append(r.oracle.build_batch(some_records(r, n, 4)))
    r.end("crash")


@scenario
def crashed_before_deletion(r: Recorder) -> None:
    """Crash after retention has renamed segments and before they are deleted."""
    r.open({**SMALL, "retention.bytes": "1000"}, topic_id=TOPIC_ID)
    for n in range(0, 80, 4):
        r.append(r.oracle.build_batch(some_records(r, n, 4)))
        r.do("set_high_watermark", offset=n + 4)
    r.do("delete_old_segments")
    r.end("crash")


def _half_cleaned(r: Recorder, suffix: str) -> None:
    """Leave the directory as compaction does between writing its result and swapping it in."""
    before = r.directory.with_name("before")
    r.open(COMPACT, topic_id=TOPIC_ID)
    keys_into(r, 30)
    r.do("set_high_watermark", offset=r.log.state().log_end_offset)
    shutil.copytree(r.directory, before)
    old = set(r.log.state().segments)
    r.do("clean")
    new = r.log.segments()
    r.end("crash")
    replaced = new[0].base_offset
    r.change(f"as it was before the cleaning, plus the new segment {replaced} with the suffix {suffix}")
    made = [(path.name, path.read_bytes()) for path in segment_files(r.directory, replaced)]
    for path in r.directory.iterdir():
        path.unlink()
    for path in before.iterdir():
        shutil.move(path, r.directory)
    before.rmdir()
    assert replaced in old
    for name, data in made:
        (r.directory / (name + suffix)).write_bytes(data)


@scenario
def crashed_compaction_cleaned(r: Recorder) -> None:
    """Crash while compaction writes: `.cleaned` files are removed."""
    _half_cleaned(r, ".cleaned")


@scenario
def crashed_compaction_swap(r: Recorder) -> None:
    """Crash after compaction has renamed to `.swap`: the `.swap` files replace the old segments."""
    _half_cleaned(r, ".swap")


@scenario
def offset_overflow(r: Recorder) -> None:
    """Write one segment whose offsets do not fit 32 bits past its base. It is split when it is opened."""
    r.open(SMALL, topic_id=TOPIC_ID)
    for n in range(0, 12, 3):
        r.append(r.oracle.build_batch(some_records(r, n, 3)))
    r.end("crash")
    r.change("two batches far beyond 32 bits follow in the only .log")
    with last_segment(r).open("ab") as file:
        for base in (2**31 + 10, 2**31 + 40):
            file.write(r.oracle.build_batch(some_records(r, 0, 3), base_offset=base, leader_epoch=0))


def _legacy(r: Recorder, magic: int) -> None:
    r.open(SMALL, topic_id=TOPIC_ID)
    now = r.oracle.now_ms
    first = 0
    codecs: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4")
    for n in range(24):
        count = 1 + n % 3
        records = [
            OracleRecord(
                key=None if i % 3 == 2 else b"key-%d" % (i % 5),
                value=None if i % 11 == 10 else b"value-%d" % i,
                timestamp=now + i * 10 - 25 * (i % 2) if magic else -1,
            )
            for i in range(first, first + count)
        ]
        kind: TimestampType = "CreateTime" if magic else "NoTimestampType"
        batch = r.oracle.build_batch(records, magic=magic, codec=codecs[n % 4], base_offset=first, timestamp_type=kind)
        r.do("append_as_follower", records=batch)
        first += count
    r.do("set_high_watermark", offset=first)
    r.end("shut_down")


@scenario
def message_format_v0(r: Recorder) -> None:
    """Write messages of before Kafka 0.10: no timestamps, wrapper messages with absolute inner offsets."""
    _legacy(r, 0)


@scenario
def message_format_v1(r: Recorder) -> None:
    """Write messages of before Kafka 0.11: timestamps, wrapper messages with relative inner offsets."""
    _legacy(r, 1)
