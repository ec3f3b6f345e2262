"""Records of committed offsets: what the encoder writes and the decoder reads is what the messages' schemas say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.coordinator.groups.group import CommittedOffset
from tailrace.coordinator.offsets import offset_kernels
from tailrace.coordinator.offsets.offset_records import key_names
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.protocol.messages import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tailrace.records import kernels
from tests.support.interpreted import interpreted

KERNELS = (offset_kernels, interpreted(offset_kernels))
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(max_size=8)
METADATA = st.text(max_size=300)


class State:
    """Takes what a decoder finds."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, str], dict[int, CommittedOffset]] = {}
        self.removed: list[tuple[str, str, int]] = []

    def replay(self, module: Any) -> Any:
        return module.OffsetReplay(
            CommittedOffset,
            lambda group, topic: self.offsets.setdefault((group, topic), {}),
            lambda *names: self.removed.append(names),
        )


def read(module: Any, key: bytes, value: bytes | None) -> Any:
    """Return (group, topic, partition, offset) of a commit, (group, topic, partition) of a tombstone, or None."""
    state = State()
    if not state.replay(module).take(key, value, 99):
        assert not state.offsets
        assert not state.removed
        return None
    if state.removed:
        return state.removed[0]
    (((group, topic), partitions),) = state.offsets.items()
    ((partition, committed),) = partitions.items()
    return group, topic, partition, committed


def encoded(
    module: Any, group: str, topic: str, tags: bytes, expire_ms: int, now_ms: int, partitions: list[Any]
) -> bytes:
    names, expires = key_names(group, topic), expire_ms != -1
    out = bytearray(module.offsets_size(partitions, 0, names, tags, expires))
    assert module.encode_offsets(partitions, 0, names, tags, expires, expire_ms, now_ms, out, 0) == len(out)
    return bytes(out)


@given(NAMES, NAMES, INT32, INT64, INT32, METADATA, INT64, INT64)
def test_every_version_of_a_record_is_read_as_its_message(
    group: str, topic: str, partition: int, offset: int, epoch: int, metadata: str, timestamp: int, expiry: int
) -> None:
    key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    for version in range(5):
        value = OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=timestamp)
        if version >= 3:
            value.leader_epoch = epoch
        if version == 1:
            value.expire_timestamp = expiry
        if version == 4:
            value.topic_id = b"\2" * 16
        expected = CommittedOffset(offset, value.leader_epoch, metadata, timestamp, value.expire_timestamp, 99)
        for module in KERNELS:
            assert read(module, key + b"more", encode_value(value, version)) == (group, topic, partition, expected)
    old_key = encode_key(LegacyOffsetCommitKey(group=group, topic=topic, partition=partition))
    old = LegacyOffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=timestamp)
    for module in KERNELS:
        expected = CommittedOffset(offset, -1, metadata, timestamp, -1, 99)
        assert read(module, old_key, encode_value(old, 0)) == (group, topic, partition, expected)
        assert read(module, key, None) == (group, topic, partition)


@given(
    NAMES,
    NAMES,
    st.sampled_from([bytes(16), b"\3" * 16]),
    st.sampled_from([-1, 2**40]),
    st.lists(st.tuples(INT32, INT64, INT32, METADATA, st.sampled_from([-1, 7])), max_size=4),
)
def test_a_commit_is_written_as_its_messages_and_read_again(
    group: str, topic: str, topic_id: bytes, expire_ms: int, partitions: list[Any]
) -> None:
    asked = [(index, offset, epoch, text.encode(), at) for index, offset, epoch, text, at in partitions]
    tags = b"\0" if topic_id == bytes(16) else b"\1\0\x10" + topic_id
    expected = []
    for index, offset, epoch, text, at in partitions:
        value = OffsetCommitValue(offset=offset, metadata=text, commit_timestamp=1_000 if at == -1 else at)
        if expire_ms != -1:
            value.expire_timestamp = expire_ms
        else:
            value.leader_epoch = epoch
            value.topic_id = topic_id
        key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=index))
        expected.append((key, encode_value(value, 4 if expire_ms == -1 else 1)))
    for module in KERNELS:
        payload = encoded(module, group, topic, tags, expire_ms, 1_000, asked)
        records = kernels.decode_records(payload, len(asked))
        assert [(delta, key, value) for delta, _, key, value, _, _ in records] == [
            (delta, key, value) for delta, (key, value) in enumerate(expected)
        ]
        state = State()
        assert state.replay(module).take_payload(payload, len(asked), 50) == len(asked)
        found = state.offsets.get((group, topic), {})
        for delta, (index, offset, epoch, text, at) in enumerate(partitions):
            if index not in [later[0] for later in partitions[delta + 1 :]]:
                committed = (offset, epoch if expire_ms == -1 else -1, text, 1_000 if at == -1 else at, expire_ms)
                assert found[index] == (*committed, 50 + delta)


@pytest.mark.parametrize("module", KERNELS)
def test_other_and_malformed_records_are_left_to_the_general_decoder(module: Any) -> None:
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=0))
    value = encode_value(OffsetCommitValue(offset=1, metadata="m", commit_timestamp=2), 4)
    assert read(module, key, value) is not None
    assert read(module, encode_key(GroupMetadataKey(group="g")), value) is None
    assert read(module, b"\0\0" + key[2:], value) is None  # an old key with a new value
    for size in range(len(value)):
        assert read(module, key, value[:size]) is None
    for size in range(len(key)):
        assert read(module, key[:size], value) is None
    for version in (b"\0\5", b"\xff\xff"):
        assert read(module, key, version + value[2:]) is None
    size = 40_000
    assert read(module, b"\0\1" + size.to_bytes(2, "big") + b"g" * size + b"\0\1t\0\0\0\0", value) is None


@pytest.mark.parametrize("module", KERNELS)
def test_a_payload_is_decoded_up_to_the_first_other_record(module: Any) -> None:
    payload = bytearray(encoded(module, "g", "t", b"\0", -1, 5, [(0, 1, -1, b"", -1), (1, 2, -1, b"", -1)]))
    kernels.encode_record(payload, 2, 0, encode_key(GroupMetadataKey(group="g")), b"value", ())
    more = bytearray()
    kernels.encode_record(more, 3, 0, encode_key(OffsetCommitKey(group="g", topic="t", partition=0)), None, ())
    state = State()
    assert state.replay(module).take_payload(bytes(payload + more), 4, 10) == 2
    assert state.removed == []
    assert {index: one.record_offset for index, one in state.offsets["g", "t"].items()} == {0: 10, 1: 11}
    assert state.replay(module).take_payload(bytes(more), 1, 10) == 1
    assert state.removed == [("g", "t", 0)]


@pytest.mark.parametrize("module", KERNELS)
def test_invalid_utf8_is_read_as_messages_read_it(module: Any) -> None:
    key = b"\0\1\0\2g\xff\0\1t\0\0\0\7"
    value = b"\0\3" + bytes(12) + b"\0\2m\xfe" + bytes(8)
    assert read(module, key, value)[:2] == ("g�", "t")
    assert read(module, key, value)[3].metadata == "m�"
