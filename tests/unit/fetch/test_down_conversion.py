"""F15: old clients get message formats that they can read, whatever format is stored."""

from __future__ import annotations

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.records.batch import Codec
from tailrace.records.conversion import down_convert, split_any
from tailrace.records.legacy import Message, iter_messages
from tests.simulation.node import Node, bytes_of, want


def messages(data: bytes) -> list[tuple[int, bytes | None]]:
    found = []
    for one in split_any(data):
        assert isinstance(one, Message)
        found += [(record.offset, None if record.value is None else bytes(record.value)) for record in one.records()]
    return found


def magics(data: bytes) -> set[int]:
    return {one.magic for one in split_any(data)}


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_f15_versions_0_and_1_get_format_0_and_versions_2_and_3_format_1(version: int, magic: int) -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", b"b")
    node.append(partition, b"c", codec=Codec.GZIP)
    data = bytes_of(node.fetch([want(partition, 0)], version=version).only)
    assert magics(data) == {magic}
    assert messages(data) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_f15_version_4_gets_stored_batches_unconverted() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", b"b")
    assert magics(bytes_of(node.fetch([want(partition, 0)], version=4).only)) == {2}


def test_f15_converted_messages_start_at_the_fetch_offset() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", b"b", b"c")
    for version in range(4):
        data = bytes_of(node.fetch([want(partition, 1)], version=version).only)
        assert messages(data) == [(1, b"b"), (2, b"c")]


def test_f15_control_batches_are_left_out() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", producer_id=7, sequence=0, transactional=True)
    node.end_transaction(partition, 7, commit=True)
    node.append(partition, b"b")
    data = bytes_of(node.fetch([want(partition, 0)], version=3).only)
    assert messages(data) == [(0, b"a"), (2, b"b")]


def test_f15_zstd_batches_are_unsupported_for_old_clients() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a" * 100)
    node.append(partition, b"b" * 100, codec=Codec.ZSTD)
    for version in range(4):
        # The messages before the zstd batch are returned. Then the batch comes first.
        assert messages(bytes_of(node.fetch([want(partition, 0)], version=version).only)) == [(0, b"a" * 100)]
        answer = node.fetch([want(partition, 1)], version=version).only
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
        assert bytes_of(answer) == b""


@pytest.mark.parametrize("version", [0, 2])
def test_f15_with_a_hard_limit_an_old_client_advances_message_by_message(version: int) -> None:
    """The batch is larger than the limit, but each of its messages fits."""
    node = Node()
    partition = node.lead()
    values = [b"%d" % n * 50 for n in range(10)]
    node.append(partition, *values)
    assert partition.log.size > 300
    seen: list[bytes | None] = []
    while len(seen) < 10:
        data = bytes_of(node.fetch([want(partition, len(seen), max_bytes=300)], version=version).only)
        assert 0 < len(data) <= 300
        got = [value for offset, value in messages(data) if offset >= len(seen)]
        assert got
        seen += got
    assert seen == values


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_f15_converted_messages_may_be_larger_than_their_batch(codec: Codec) -> None:
    node = Node()
    partition = node.lead()
    values = [b"%d" % n for n in range(50)]
    node.append(partition, *values, codec=codec)
    for version in range(4):
        data = bytes_of(node.fetch([want(partition, 0)], version=version).only)
        assert len(data) > partition.log.size
        assert [value for _, value in messages(data)] == values


def test_f15_a_message_above_the_hard_limit_is_returned_incomplete() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"x" * 1_000)
    data = bytes_of(node.fetch([want(partition, 0, max_bytes=100)], version=1).only)
    assert len(data) == 100
    assert list(split_any(data)) == []


def test_f15_an_empty_answer_stays_empty() -> None:
    node = Node()
    partition = node.lead()
    for version in range(4):
        assert bytes_of(node.fetch([want(partition, 0)], version=version).only) == b""


@pytest.mark.parametrize("stored", [0, 1])
def test_f15_old_stored_formats_are_served_to_new_clients(stored: int) -> None:
    """Messages that an old broker wrote are returned unchanged, or converted for clients older than their format."""
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", b"b")
    old = down_convert(bytes_of(node.fetch([want(partition, 0)]).only), stored).data
    upgraded = node.lead("upgraded")
    upgraded.log.append_as_follower(old, leader_epoch=0, now_ms=node.now_ms)
    upgraded.log.advance_high_watermark(2)
    for version in range(4, 19):
        assert bytes_of(node.fetch([want(upgraded, 0)], version=version).only) == old
    for version, magic in ((0, 0), (1, 0), (2, stored), (3, stored)):
        data = bytes_of(node.fetch([want(upgraded, 0)], version=version).only)
        assert magics(data) == {magic}
        assert messages(data) == [(0, b"a"), (1, b"b")]
    assert [record.offset for record in iter_messages(old)] == [0, 1]
