"""L11: the .snapshot file of producer states."""

from __future__ import annotations

import pytest

from tailrace.log.producers.producer_snapshot import CorruptSnapshot, SnapshotEntry, decode_snapshot, encode_snapshot
from tailrace.records.codecs.crc32c import crc32c
from tests.support.golden import golden

PATH = "/data/topic-0/00000000000000000099.snapshot"
IDLE = SnapshotEntry(10, 0, 2, 2, 2, 1_700_000_000_000, 5, -1)
IN_TRANSACTION = SnapshotEntry(13, 1, 11, 98, 5, 1_700_000_000_209, -1, 69)


def test_a_written_snapshot_is_read_back() -> None:
    for entries in ([], [IDLE], [IN_TRANSACTION, IDLE]):
        assert decode_snapshot(encode_snapshot(entries), PATH) == entries


def test_l11_a_snapshot_without_producers_is_ten_bytes() -> None:
    assert encode_snapshot([]).hex(" ") == "00 01 48 67 4b c7 00 00 00 00"


def test_l11_kafkas_snapshot_is_read_and_written_the_same() -> None:
    path = golden("transactions").path / "files" / "topic-0" / "00000000000000000099.snapshot"
    entries = decode_snapshot(path.read_bytes(), str(path))
    assert [entry.producer_id for entry in entries] == [10, 11, 12, 13]
    assert entries[0] == IDLE
    assert entries[3].current_transaction_first_offset == 69
    assert encode_snapshot(entries) == path.read_bytes()


def damaged(position: int, value: int) -> bytes:
    data = bytearray(encode_snapshot([IDLE, IN_TRANSACTION]))
    data[position] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "0 bytes are less than the header of 10"),
        (encode_snapshot([])[:-1], "9 bytes are less"),
        (damaged(1, 2), "unknown version 2"),
        (damaged(3, 0xFF), "checksum does not match"),
        (damaged(60, 0xFF), "checksum does not match"),
        (encode_snapshot([IDLE])[:-1], "checksum does not match"),
        (encode_snapshot([IDLE]) + b"\0", "checksum does not match"),
    ],
)
def test_a_corrupt_snapshot_is_named_in_the_error(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptSnapshot, match=complaint) as caught:
        decode_snapshot(data, PATH)
    assert caught.value.path == PATH
    assert str(caught.value).startswith(PATH)


def test_a_count_that_does_not_fit_the_size_is_corrupt() -> None:
    data = bytearray(encode_snapshot([IDLE]))
    data[6:10] = (2).to_bytes(4, "big")
    data[2:6] = crc32c(bytes(data[6:])).to_bytes(4, "big")
    with pytest.raises(CorruptSnapshot, match="the count is 2 producers, but the file has 56 bytes"):
        decode_snapshot(bytes(data), PATH)
