"""Control batches: records that the broker writes for itself and clients never see.

A control record's key is two int16: version (0) and type. The value depends on the type:

    0 ABORT, 1 COMMIT     end of a transaction: int16 version (0), int32 coordinator epoch
    2 LEADER_CHANGE       the first record of an epoch in the metadata log: leader, voters, voters that voted for it
    3 SNAPSHOT_HEADER     first record of a snapshot: append time of the last record that it contains
    4 SNAPSHOT_FOOTER     last record of a snapshot
    5 KRAFT_VERSION       the feature level of the quorum
    6 KRAFT_VOTERS        the voters and their endpoints

Values 2 to 6 start with their own version (int16, always 0) and are in Kafka's flexible encoding: lengths are unsigned
varints, one more than the length, and every structure ends with a count of tagged fields. Any other type is UNKNOWN and
is skipped.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tailrace.model.ids import NO_LEADER_EPOCH
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import Record, TimestampType, iter_records

_KEY = Struct(">hh")
_MARKER = Struct(">hi")


class ControlType(IntEnum):
    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a transaction, and the epoch of the coordinator that decided on it."""

    type: ControlType
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.type == ControlType.COMMIT


class LeaderChange(NamedTuple):
    version: int
    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


class SnapshotHeader(NamedTuple):
    version: int
    last_contained_log_timestamp: int


class SnapshotFooter(NamedTuple):
    version: int


class KRaftVersion(NamedTuple):
    version: int
    kraft_version: int


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int


class Voter(NamedTuple):
    voter_id: int
    directory_id: UUID
    endpoints: tuple[Endpoint, ...]
    min_supported_version: int
    max_supported_version: int


class KRaftVoters(NamedTuple):
    version: int
    voters: tuple[Voter, ...]


ControlValue: TypeAlias = (
    EndTransactionMarker | LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters
)


def control_key(kind: ControlType) -> bytes:
    if kind == ControlType.UNKNOWN:
        raise ValueError("a control record of unknown type cannot be written")
    return _KEY.pack(0, kind)


def control_type(key: bytes | None) -> ControlType:
    """Return the type in a control record's key."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatch(f"control record key of {0 if key is None else len(key)} bytes, but 4 are needed")
    version, code = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"control record key version {version} is negative")
    return ControlType(code) if 0 <= code <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def parse_marker(record: Record) -> EndTransactionMarker:
    """Decode the commit or abort marker in a control record."""
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptBatch(f"control record of type {kind.name} is not an end-transaction marker")
    if record.value is None or len(record.value) < _MARKER.size:
        raise CorruptBatch(f"end-transaction marker needs {_MARKER.size} bytes of value")
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise CorruptBatch(f"end-transaction marker version {version} is negative")
    return EndTransactionMarker(kind, coordinator_epoch)


def end_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """Return the marker of a transactional control batch, or None for other control batches."""
    record = next(iter_records(batch), None)
    if record is None or control_type(record.key) not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    return parse_marker(record)


def parse_control(record: Record) -> ControlValue | None:
    """Decode a control record. Return None for a type that a later version defines."""
    kind = control_type(record.key)
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        return parse_marker(record)
    if kind == ControlType.UNKNOWN:
        return None
    read = _Reader(record.value or b"")
    version = read.integer(2)
    if kind == ControlType.LEADER_CHANGE:
        return LeaderChange(version, read.integer(4), read.voter_ids(), read.voter_ids())
    if kind == ControlType.SNAPSHOT_HEADER:
        return SnapshotHeader(version, read.integer(8))
    if kind == ControlType.SNAPSHOT_FOOTER:
        return SnapshotFooter(version)
    if kind == ControlType.KRAFT_VERSION:
        return KRaftVersion(version, read.integer(2))
    return KRaftVoters(version, tuple([read.voter() for _ in range(read.count())]))


def control_value(value: ControlValue) -> bytes:
    """Encode a control record's value."""
    out = bytearray()
    if isinstance(value, EndTransactionMarker):
        return _MARKER.pack(0, value.coordinator_epoch)
    out += value.version.to_bytes(2, "big", signed=True)
    if isinstance(value, LeaderChange):
        out += value.leader_id.to_bytes(4, "big", signed=True)
        for ids in (value.voters, value.granting_voters):
            _write_unsigned(out, len(ids) + 1)
            for voter_id in ids:
                out += voter_id.to_bytes(4, "big", signed=True) + b"\0"
    elif isinstance(value, SnapshotHeader):
        out += value.last_contained_log_timestamp.to_bytes(8, "big", signed=True)
    elif isinstance(value, KRaftVersion):
        out += value.kraft_version.to_bytes(2, "big", signed=True)
    elif isinstance(value, KRaftVoters):
        _write_unsigned(out, len(value.voters) + 1)
        for voter in value.voters:
            _write_voter(out, voter)
    out.append(0)
    return bytes(out)


def build_end_marker(
    marker: EndTransactionMarker,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Build the batch that ends a producer's transaction in a partition."""
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )
    builder.append(timestamp, control_key(marker.type), control_value(marker))
    return builder.build()


def build_control_batch(
    value: ControlValue, *, timestamp: int, base_offset: int = 0, leader_epoch: int = NO_LEADER_EPOCH
) -> bytes:
    """Build a batch with one quorum record, as in the metadata log and its snapshots."""
    builder = BatchBuilder(
        base_offset=base_offset,
        codec=Codec.NONE,
        timestamp_type=TimestampType.CREATE_TIME,
        control=True,
        leader_epoch=leader_epoch,
    )
    builder.append(timestamp, control_key(_TYPES[type(value)]), control_value(value))
    return builder.build()


_TYPES: dict[type[ControlValue], ControlType] = {
    LeaderChange: ControlType.LEADER_CHANGE,
    SnapshotHeader: ControlType.SNAPSHOT_HEADER,
    SnapshotFooter: ControlType.SNAPSHOT_FOOTER,
    KRaftVersion: ControlType.KRAFT_VERSION,
    KRaftVoters: ControlType.KRAFT_VOTERS,
}


class _Reader:
    """Reads Kafka's flexible encoding."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.position : self.position + size]
        if len(piece) < size:
            raise CorruptBatch(f"control record value ends early: {size} bytes needed at {self.position}")
        self.position += size
        return piece

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def unsigned(self) -> int:
        value = 0
        for index in range(5):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise CorruptBatch(f"control record value has a varint without an end at {self.position}")

    def count(self) -> int:
        return self.unsigned() - 1

    def text(self) -> str:
        return self.take(self.count()).decode("utf-8", "replace")

    def tags(self) -> None:
        for _ in range(self.unsigned()):
            self.unsigned()
            self.take(self.unsigned())

    def voter_ids(self) -> tuple[int, ...]:
        return tuple([self._voter_id() for _ in range(self.count())])

    def _voter_id(self) -> int:
        voter_id = self.integer(4)
        self.tags()
        return voter_id

    def voter(self) -> Voter:
        voter_id = self.integer(4)
        directory_id = UUID(bytes=self.take(16))
        endpoints = tuple([self._endpoint() for _ in range(self.count())])
        lowest, highest = self.integer(2), self.integer(2)
        self.tags()
        self.tags()
        return Voter(voter_id, directory_id, endpoints, lowest, highest)

    def _endpoint(self) -> Endpoint:
        endpoint = Endpoint(self.text(), self.text(), int.from_bytes(self.take(2), "big"))
        self.tags()
        return endpoint


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_voter(out: bytearray, voter: Voter) -> None:
    out += voter.voter_id.to_bytes(4, "big", signed=True)
    out += voter.directory_id.bytes
    _write_unsigned(out, len(voter.endpoints) + 1)
    for endpoint in voter.endpoints:
        for text in (endpoint.name, endpoint.host):
            _write_unsigned(out, len(text.encode()) + 1)
            out += text.encode()
        out += endpoint.port.to_bytes(2, "big") + b"\0"
    out += voter.min_supported_version.to_bytes(2, "big", signed=True)
    out += voter.max_supported_version.to_bytes(2, "big", signed=True)
    out += b"\0\0"
