"""Control batches: markers and the quorum's records, there and back."""

from uuid import UUID

import pytest

from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.control_records import (
    ControlType,
    Endpoint,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    build_control_batch,
    build_end_marker,
    control_key,
    control_type,
    control_value,
    end_marker,
    parse_control,
    parse_marker,
)
from tailrace.records.record import Record, TimestampType, iter_records


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(0, 0, TimestampType.CREATE_TIME, key, value)


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_is_a_transactional_control_batch_with_one_record(kind):
    data = build_end_marker(
        EndTransactionMarker(kind, 6), timestamp=99, producer_id=5, producer_epoch=3, base_offset=40, leader_epoch=8
    )
    batch = RecordBatch(memoryview(data))
    batch.check()
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.base_offset, batch.leader_epoch, batch.base_sequence, batch.record_count) == (40, 8, -1, 1)
    (only,) = iter_records(batch)
    assert only.key == b"\0\0\0" + bytes([kind])
    assert only.value == b"\0\0\0\0\0\x06"
    assert end_marker(batch) == EndTransactionMarker(kind, 6)
    assert end_marker(batch).is_commit == (kind == ControlType.COMMIT)


VALUES = [
    LeaderChange(0, 1, (1, 2, 3), (1, 3)),
    SnapshotHeader(0, 1_700_000_000_000),
    SnapshotFooter(0),
    KRaftVersion(0, 1),
    KRaftVoters(
        0,
        (
            Voter(1, UUID(int=77), (Endpoint("CONTROLLER", "localhost", 9093), Endpoint("B", "::1", 65535)), 0, 1),
            Voter(2, UUID(int=2**128 - 1), (), 0, 0),
        ),
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_quorum_records_round_trip(value):
    batch = RecordBatch(memoryview(build_control_batch(value, timestamp=5, leader_epoch=1)))
    batch.check()
    (only,) = iter_records(batch)
    assert parse_control(only) == value
    assert end_marker(batch) is None


# As Kafka 4.3.1's generated classes write the values above.
KAFKAS_BYTES = [
    "00000000000104000000010000000002000000000300030000000100000000030000",
    "00000000018bcfe5680000",
    "000000",
    "0000000100",
    "000003000000010000000000000000000000000000004d030b434f4e54524f4c4c45520a6c6f63616c686f73742385000242043a3a31ffff00"
    "00000001000000000002ffffffffffffffffffffffffffffffff0100000000000000",
]


@pytest.mark.parametrize(("value", "encoded"), list(zip(VALUES, KAFKAS_BYTES, strict=True)))
def test_quorum_records_have_kafkas_bytes(value, encoded):
    assert control_value(value).hex() == encoded


def test_control_types_of_later_versions_are_unknown_and_not_refused():
    key = b"\0\0\0\x63"
    assert control_type(key) == ControlType.UNKNOWN
    assert parse_control(record(key, b"whatever")) is None
    assert control_type(b"\0\x07\0\x01extra") == ControlType.COMMIT
    with pytest.raises(ValueError, match="unknown type"):
        control_key(ControlType.UNKNOWN)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_key_that_is_too_short_is_refused(key):
    with pytest.raises(CorruptBatch, match="4 are needed"):
        control_type(key)


def test_negative_control_record_versions_are_corrupt():
    with pytest.raises(CorruptBatch, match="negative"):
        control_type(b"\xff\xff\0\0")
    with pytest.raises(CorruptBatch, match="negative"):
        parse_marker(record(control_key(ControlType.COMMIT), b"\xff\xff\0\0\0\0"))


def test_a_marker_needs_its_type_and_its_value():
    with pytest.raises(CorruptBatch, match="LEADER_CHANGE is not an end"):
        parse_marker(record(control_key(ControlType.LEADER_CHANGE), b"\0" * 6))
    for value in (None, b"\0" * 5):
        with pytest.raises(CorruptBatch, match="6 bytes"):
            parse_marker(record(control_key(ControlType.ABORT), value))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_control_value_truncated_at_any_byte_is_refused(value):
    whole = control_value(value)
    kind = control_type(next(iter_records(RecordBatch(memoryview(build_control_batch(value, timestamp=0))))).key)
    for size in range(len(whole) - 1):  # the last byte only counts tagged fields
        with pytest.raises(CorruptBatch, match="ends early"):
            parse_control(record(control_key(kind), whole[:size]))


def test_a_control_batch_without_records_has_no_end_marker():
    builder = BatchBuilder(control=True)
    builder.append(0, control_key(ControlType.SNAPSHOT_FOOTER), control_value(SnapshotFooter(0)))
    data = bytearray(builder.build()[:61])
    data[57:61] = bytes(4)
    assert end_marker(RecordBatch(memoryview(data))) is None
