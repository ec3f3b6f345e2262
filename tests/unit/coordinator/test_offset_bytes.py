"""A committed offset's bytes read in one go: the same as the general way, or nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.coordinator.groups.group import CommittedOffset
from tailrace.coordinator.offsets.offset_bytes import read_commit, write_commit
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.protocol.messages import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


@settings(deadline=None)
@given(TEXT, TEXT, INT32, INT64, INT32, TEXT | st.text("x", min_size=120, max_size=300), INT64, st.sampled_from([3, 4]))
def test_the_same_as_the_general_way(
    group: str, topic: str, partition: int, offset: int, epoch: int, metadata: str, timestamp: int, version: int
) -> None:
    key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    value = OffsetCommitValue(offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=timestamp)
    if version == 4:
        value.topic_id = b"\7" * 16
    found = read_commit(key, encode_value(value, version), 99)
    if found is None:
        assert version == 4
        assert len(metadata.encode()) >= 127
        return
    assert (found.group_id, found.topic, found.partition) == (group, topic, partition)
    assert found.committed == (offset, epoch, metadata, timestamp, -1, 99)


@settings(deadline=None)
@given(TEXT, TEXT, INT32, INT64, INT32, TEXT | st.text("x", min_size=120, max_size=300), INT64, st.booleans())
def test_written_as_the_general_way_writes_it(
    group: str, topic: str, partition: int, offset: int, epoch: int, metadata: str, timestamp: int, has_id: bool
) -> None:
    topic_id = (b"\7" if has_id else b"\0") * 16
    written = write_commit(
        group, topic, topic_id, partition, CommittedOffset(offset, epoch, metadata, timestamp, -1, -1)
    )
    if written is None:
        assert len(metadata.encode()) >= 127
        return
    value = OffsetCommitValue(
        offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=timestamp, topic_id=topic_id
    )
    assert written == (
        encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition)),
        encode_value(value, 4),
    )


def test_anything_else_is_left_alone() -> None:
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=0))
    old = encode_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=2), 1)
    assert read_commit(key, old, 0) is None
    new = encode_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=2), 4)
    assert read_commit(encode_key(GroupMetadataKey(group="g")), new, 0) is None
    for size in range(len(new) - 2):
        assert read_commit(key, new[:size], 0) is None
    for size in range(len(key)):
        assert read_commit(key[:size], new, 0) is None
