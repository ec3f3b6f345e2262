"""Metadata records in batches: the version of each record, and the batches of log and snapshot.

Batches are uncompressed, of create time, without keys and without a producer; each record's value is a metadata frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tailrace.metadata.image.features import RecordVersions
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.protocol.internal_records.metadata_frames import decode_frame, encode_frame
from tailrace.protocol.message import Message
from tailrace.records import kernels
from tailrace.records.batch import RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.control_records import (
    ControlType,
    ControlValue,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    control_key,
    control_value,
)
from tailrace.records.record import uncompressed_payload

MAX_RECORDS = 10_000  # in one batch, as Kafka's controller limits itself

_CONTROL_TYPES: dict[type[ControlValue], ControlType] = {
    LeaderChange: ControlType.LEADER_CHANGE,
    SnapshotHeader: ControlType.SNAPSHOT_HEADER,
    SnapshotFooter: ControlType.SNAPSHOT_FOOTER,
    KRaftVersion: ControlType.KRAFT_VERSION,
    KRaftVoters: ControlType.KRAFT_VOTERS,
}


def version_of(record: Message, versions: RecordVersions) -> int:
    """Return the version that a record is written in under the cluster's metadata.version."""
    name = record.SCHEMA.name
    if name in ("PartitionRecord", "PartitionChangeRecord"):
        return versions.partition
    if name == "RegisterBrokerRecord":
        return versions.register_broker
    return _change_version(record) if name == "BrokerRegistrationChangeRecord" else 0


def _change_version(change: Any) -> int:
    """Return the lowest version that has all the changed fields: a fence is still version 0."""
    if change.cordoned_log_dirs is not None:
        return 3
    return 2 if change.log_dirs else int(change.in_controlled_shutdown)


def frames_of(records: Iterable[Message], versions: RecordVersions) -> Iterator[bytes]:
    for record in records:
        yield encode_frame(record, version_of(record, versions))


def in_batches(frames: Iterable[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    """Group frames into batches of a size that Kafka would also write."""
    group: list[bytes] = []
    size = 0
    for frame in frames:
        if group and (len(group) == MAX_RECORDS or size + len(frame) > max_bytes):
            yield group
            group, size = [], 0
        group.append(frame)
        size += len(frame)
    if group:
        yield group


def build_frames_batch(
    frames: Iterable[bytes], *, base_offset: Offset, leader_epoch: LeaderEpoch, timestamp_ms: int
) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch)
    for frame in frames:
        builder.append(timestamp_ms, None, frame)
    return builder.build()


def build_batch(
    records: Iterable[Message],
    versions: RecordVersions,
    *,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    timestamp_ms: int,
) -> bytes:
    return build_frames_batch(
        frames_of(records, versions), base_offset=base_offset, leader_epoch=leader_epoch, timestamp_ms=timestamp_ms
    )


def build_control_batch(
    values: Sequence[ControlValue], *, base_offset: Offset, leader_epoch: LeaderEpoch, timestamp_ms: int
) -> bytes:
    """Build a batch of several control records, as at the start of an epoch or a snapshot."""
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch, control=True)
    for value in values:
        builder.append(timestamp_ms, control_key(_CONTROL_TYPES[type(value)]), control_value(value))
    return builder.build()


def records_in(batch: RecordBatch) -> Iterator[Message]:
    """Yield the metadata records of a batch, which must not be a control batch."""
    if batch.record_count:
        for one in kernels.decode_records(bytes(uncompressed_payload(batch)), batch.record_count):
            yield decode_frame(one[3] or b"").message
