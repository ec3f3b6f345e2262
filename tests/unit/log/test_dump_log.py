"""The rows of log files: batches, records, and what cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.dump import Row
from tailrace.log.inspect.dump_decoders import decoder_for
from tailrace.log.inspect.dump_log import DumpOptions, dump_log_file
from tests.support.batches import batch


def rows(path: Path, **options: object) -> list[Row]:
    return list(dump_log_file(DiskFiles(), str(path), DumpOptions(**options)))  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch((b"k", b"v"), b"w", base_offset=0) + batch(b"x", base_offset=2))
    return path


def test_batches_are_dumped_alone_or_with_their_records(log: Path) -> None:
    assert [row.kind for row in rows(log)] == ["batch", "batch"]
    with_records = rows(log, with_records=True)
    assert [row.kind for row in with_records] == ["batch", "record", "record", "batch", "record"]
    assert "payload" not in with_records[1].fields
    with_data = rows(log, decode=decoder_for("topic"))
    assert [(row.fields.get("key"), row.fields["payload"]) for row in with_data if row.kind == "record"] == [
        ("k", "v"),
        (None, "w"),
        (None, "x"),
    ]
    assert rows(log, decode=decoder_for("topic", "hex"))[1].fields["payload"] == "76"
    assert rows(log, decode=decoder_for("topic", "base64"))[1].fields["payload"] == "dg=="


def test_a_wrong_checksum_is_shown_and_the_walk_continues(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[61] ^= 0xFF  # the first record's length
    data[-2] ^= 1  # the last record's value
    log.write_bytes(data)
    shown = rows(log, with_records=True)
    assert [row.fields.get("isvalid") for row in shown if row.kind == "batch"] == [False, False]
    assert [row.kind for row in shown] == ["batch", "undecodable", "batch", "record"]


def test_a_tail_that_is_not_a_batch_is_reported_with_its_size(log: Path) -> None:
    size = log.stat().st_size
    with open(log, "ab") as file:
        file.write(bytes(1000))
    tail = rows(log)[-1]
    assert (tail.kind, tail.fields["size"], tail.fields["position"]) == ("invalidBytes", 1000, size)


def test_the_dump_stops_at_its_limit(log: Path) -> None:
    first = rows(log)[0].fields["size"]
    assert [row.kind for row in rows(log, max_bytes=first + 5)] == ["batch"]
