"""Walking a log file: headers only, or whole batches, of all three formats."""

from __future__ import annotations

import random

import pytest

from tailrace.log.disk.files import File
from tailrace.log.segments.batch_walk import BatchHeader, find_header, parse_header, read_batches, walk_headers
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.batches import batch
from tests.support.small_logs import FOLDER, new_files


def file_of(data: bytes) -> File:
    file = new_files().open(f"{FOLDER}/00000000000000000000.log", create=True)
    file.write(0, data)
    return file


def messages(magic: int, first: int, count: int, codec: Codec = Codec.NONE) -> bytes:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP
    records = [Record(first + n, 50 + n if magic else -1, kind, b"k", b"value") for n in range(count)]
    return build_messages(records, magic=magic, codec=codec)


def many_batches(seed: int = 3, count: int = 60) -> bytes:
    """Return batches of a few bytes to several chunks, some with gaps before them."""
    rng = random.Random(seed)
    data, offset = bytearray(), 0
    for _ in range(count):
        offset += rng.choice([0, 0, 0, 5])
        values = [rng.randbytes(rng.choice([0, 20, 300, 9000])) for _ in range(rng.choice([1, 2, 7]))]
        data += batch(*values, base_offset=offset, leader_epoch=2)
        offset += len(values)
    return bytes(data)


def test_a_v2_header_has_all_facts_without_decompression() -> None:
    data = bytes(batch(b"a", b"b", timestamp=[9, 7], base_offset=40, leader_epoch=3, producer_id=5, sequence=6))
    assert parse_header(data, 0, 512, len(data)) == BatchHeader(
        position=512,
        size=len(data),
        base_offset=40,
        last_offset=41,
        leader_epoch=3,
        magic=2,
        crc=RecordBatch(memoryview(data)).crc,
        attributes=0,
        base_timestamp=9,
        max_timestamp=9,
        producer_id=5,
        producer_epoch=0,
        base_sequence=6,
        record_count=2,
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_the_header_of_an_old_message_has_its_last_offset(magic: int) -> None:
    data = messages(magic, 10, 3, Codec.GZIP)
    header = next(walk_headers(file_of(data), 0, len(data)))
    assert (header.base_offset, header.last_offset, header.next_offset) == (12, 12, 13)
    assert (header.magic, header.size, header.leader_epoch, header.producer_id) == (magic, len(data), -1, -1)
    assert header.max_timestamp == (52 if magic else -1)


def test_a_walk_yields_the_header_of_every_batch_in_order() -> None:
    data = many_batches()
    headers = list(walk_headers(file_of(data), 0, len(data)))
    assert len(headers) == 60
    assert [header.position for header in headers[1:]] == [header.position + header.size for header in headers[:-1]]
    assert headers[-1].position + headers[-1].size == len(data)


def test_a_walk_may_begin_at_any_batch() -> None:
    data = many_batches()
    file = file_of(data)
    headers = list(walk_headers(file, 0, len(data)))
    for slot in range(0, 60, 7):
        assert list(walk_headers(file, headers[slot].position, len(data))) == headers[slot:]


def test_read_batches_yields_headers_with_the_bytes_of_their_batches() -> None:
    data = many_batches()
    file = file_of(data)
    taken = [(header, bytes(view)) for header, view in read_batches(file, 0, len(data))]
    assert [header for header, _ in taken] == list(walk_headers(file, 0, len(data)))
    assert b"".join(view for _, view in taken) == data


def test_a_batch_larger_than_a_chunk_is_read_whole() -> None:
    data = bytes(batch(b"small")) + bytes(batch(bytes(3_000_000), base_offset=1)) + bytes(batch(b"last", base_offset=2))
    sizes = [len(view) for _, view in read_batches(file_of(data), 0, len(data))]
    assert sum(sizes) == len(data)
    assert sizes[1] > 3_000_000


def test_formats_may_follow_each_other() -> None:
    data = messages(0, 0, 2) + messages(1, 2, 3, Codec.SNAPPY) + bytes(batch(b"x", base_offset=5))
    headers = list(walk_headers(file_of(data), 0, len(data)))
    assert [(header.magic, header.last_offset) for header in headers] == [(0, 0), (0, 1), (1, 4), (2, 5)]
    assert [header for header, _ in read_batches(file_of(data), 0, len(data))] == headers


@pytest.mark.parametrize("seed", range(4))
def test_find_header_returns_the_same_batch_as_a_walk(seed: int) -> None:
    data = many_batches(seed) if seed else messages(1, 0, 40) + bytes(batch(b"x", b"y", base_offset=40))
    file = file_of(data)
    headers = list(walk_headers(file, 0, len(data)))
    for offset in range(headers[-1].next_offset + 2):
        wanted = next((header for header in headers if header.last_offset >= offset), None)
        assert find_header(file, 0, len(data), offset) == wanted
    last = headers[-1]
    assert find_header(file, headers[4].position, len(data), last.last_offset) == last


def test_a_walk_over_an_empty_range_yields_nothing() -> None:
    file = file_of(many_batches())
    assert find_header(file, 100, 100, 0) is None
    assert list(walk_headers(file, 100, 100)) == []
    assert list(read_batches(file, 100, 100)) == []


def damaged(change: str) -> bytes:
    data = bytearray(batch(b"a", base_offset=0) + batch(b"b", base_offset=1))
    second = len(data) // 2
    if change == "cut header":
        return bytes(data[: second + 5])
    if change == "cut batch":
        return bytes(data[:-3])
    position, value = {
        "length too small": (second + 8, (10).to_bytes(4, "big")),
        "length too large": (second + 8, (10_000).to_bytes(4, "big")),
        "negative length": (second + 8, b"\xff\xff\xff\xff"),
        "smaller than a header": (second + 8, (30).to_bytes(4, "big")),
        "unknown magic": (second + 16, b"\x03"),
    }[change]
    data[position : position + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("cut header", "5 bytes follow the last batch"),
        ("cut batch", "bytes, but only 66 follow"),
        ("length too small", "batch length 10 is too small"),
        ("length too large", "batch length gives 10012 bytes, but only 69 follow"),
        ("negative length", "batch length -1 is too small"),
        ("smaller than a header", "smaller than its header of 61"),
        ("unknown magic", "unknown magic 3"),
    ],
)
def test_invalid_bytes_are_reported_with_file_and_position(change: str, complaint: str) -> None:
    data = damaged(change)
    for walk in (walk_headers, read_batches):
        seen = 0
        with pytest.raises(CorruptBatch) as caught:  # noqa: PT012  the first batch is sound
            for _ in walk(file_of(data), 0, len(data)):
                seen += 1
        assert seen == 1
        assert complaint in caught.value.reason
        assert str(caught.value).startswith(f"{FOLDER}/00000000000000000000.log at position 69: ")


def test_a_file_that_ends_before_the_given_size_is_corrupt() -> None:
    data = many_batches()
    file = file_of(data[:-1])
    with pytest.raises(CorruptBatch, match="the file ends after"):
        list(read_batches(file, 0, len(data)))


def test_a_message_smaller_than_an_empty_one_is_corrupt() -> None:
    data = bytearray(messages(1, 0, 1))
    data[8:12] = (15).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="smaller than an empty one of 34"):
        list(walk_headers(file_of(bytes(data)), 0, len(data)))
