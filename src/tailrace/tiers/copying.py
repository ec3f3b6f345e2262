"""Copying: the sealed segments of a leader's log are copied to the remote store, oldest first.

A segment is copied when it is sealed and everything in it is committed: the next segment starts at or below the last
stable offset. For each segment:

    1. publish COPY_SEGMENT_STARTED
    2. let the store copy the files
    3. publish COPY_SEGMENT_FINISHED; from now on the segment can be read, and its local copy may be deleted

If step 2 fails, the segment is deleted at once, and a later run copies it under a new id. A copy that does not end has
a deadline, so that it fails, too.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from tailrace.log.disk.checkpoints import encode_entries
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset
from tailrace.tiers.deletion import delete_segment, state_record
from tailrace.tiers.metadata.segment_records import encode_segment
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState
from tailrace.tiers.steps import Beside, Publish, RemoteSteps
from tailrace.tiers.stores.remote_store import (
    RemoteStorageError,
    RemoteStore,
    RetriableRemoteStorageError,
    SegmentFiles,
)

_log = logging.getLogger(__name__)

GRACE_MS: Final = 30_000


class MissingSnapshot(Exception):
    """A segment without a producer snapshot at its end."""


class CustomMetadataTooLarge(Exception):
    """A store returned more custom metadata than `remote.log.metadata.custom.metadata.max.bytes`."""


class CopyQuota(Protocol):
    def is_exceeded(self, now_ms: int) -> bool: ...
    def record(self, size: int, now_ms: int) -> None: ...


class CopySettings(NamedTuple):
    files: Files
    store: RemoteStore
    broker_id: BrokerId
    new_id: Callable[[], bytes]
    quota: CopyQuota
    timeout_ms: int
    custom_metadata_bytes_max: int


class Candidate(NamedTuple):
    """A sealed segment, and the offset at which the next one starts."""

    segment: Segment
    end: Offset


def candidates(log: PartitionLog, copied: Offset) -> list[Candidate]:
    """Return the segments to copy after the last copied offset."""
    last_stable = log.last_stable_offset
    if last_stable <= 0 or copied >= last_stable:
        return []
    segments = log.segments.between(max(copied + 1, log.log_start_offset), 2**63 - 1)
    return [Candidate(one, after.base_offset) for one, after in pairwise(segments) if after.base_offset <= last_stable]


def copy_segments(partition: RemotePartition, settings: CopySettings, now_ms: int) -> RemoteSteps[bool]:
    """Copy what can be copied. Return False if the quota ended the run before."""
    partition.find_bounds(now_ms)
    copied = partition.copied
    assert copied is not None
    for candidate in candidates(partition.log, copied):
        if partition.is_stopped or not partition.is_leader:
            return True
        if settings.quota.is_exceeded(now_ms):
            return False
        settings.quota.record(candidate.segment.size, now_ms)
        now_ms = yield from _copy(partition, candidate, settings, now_ms)
    return True


def _copy(partition: RemotePartition, candidate: Candidate, settings: CopySettings, now_ms: int) -> RemoteSteps[int]:
    started = describe(partition, candidate, settings, now_ms)
    files = files_of(settings.files, partition.log, candidate)
    partition.being_copied.add(started.segment_id)
    try:
        _, now_ms = yield Publish(started.segment_id, encode_segment(started))
        custom, now_ms = yield from _copy_files(partition, started, files, settings, now_ms)
        if partition.is_stopped:  # the partition was deleted or is no longer tiered
            copied = replace(started, custom_metadata=custom)
            return (yield from delete_segment(settings.store, copied, settings.broker_id, partition.counters, now_ms))
        finished = state_record(
            started, RemoteSegmentState.COPY_SEGMENT_FINISHED, settings.broker_id, now_ms, custom_metadata=custom
        )
        _, now_ms = yield finished
    finally:
        partition.being_copied.discard(started.segment_id)
    partition.counters.copied_bytes += started.size
    partition.note_copied(started.end_offset)
    _log.info("%s: copied %s to the remote store", partition.key, candidate.segment)
    return now_ms


def _copy_files(
    partition: RemotePartition, started: RemoteSegment, files: SegmentFiles, settings: CopySettings, now_ms: int
) -> RemoteSteps[tuple[bytes | None, int]]:
    """Copy the files. Delete them if that fails, except after an error that is only a matter of time."""
    store, counters = settings.store, partition.counters
    counters.copy_requests += 1
    custom: bytes | None = None
    try:
        # The store ends a copy that is too slow itself. The later end is for a store that blocks.
        copy = partial(store.copy_segment, started, files, settings.timeout_ms)
        undo = partial(store.delete_segment, started)
        custom, now_ms = yield Beside(copy, settings.timeout_ms + GRACE_MS, undo)
        if custom is not None and len(custom) > settings.custom_metadata_bytes_max:
            partition.refuse_copies()
            raise CustomMetadataTooLarge(
                f"{partition.key}: the remote store returned {len(custom)} bytes of custom metadata; "
                f"remote.log.metadata.custom.metadata.max.bytes is {settings.custom_metadata_bytes_max}. Nothing more "
                "is copied until the partition has a new leader"
            )
    except RetriableRemoteStorageError:
        raise
    except (RemoteStorageError, CustomMetadataTooLarge) as error:
        counters.copy_errors += 1
        _log.warning("%s: the copy of the segment at %d failed: %s", partition.key, started.start_offset, error)
        copied = replace(started, custom_metadata=custom)
        yield from delete_segment(store, copied, settings.broker_id, counters, now_ms)
        raise
    return custom, now_ms


def describe(partition: RemotePartition, candidate: Candidate, settings: CopySettings, now_ms: int) -> RemoteSegment:
    """Return the metadata of a segment that is about to be copied, with a new id."""
    segment, end = candidate
    return RemoteSegment(
        RemoteSegmentId(
            partition.topic_id, partition.key.topic, partition.key.partition, uuid.UUID(bytes=settings.new_id())
        ),
        segment.base_offset,
        end - 1,
        settings.broker_id,
        segment.retention_timestamp_ms(),
        now_ms,
        tuple(epochs_between(partition.epochs, segment.base_offset, end)),
        segment.size,
        txn_index_empty=not segment.transaction_index.entries,
    )


def files_of(files: Files, log: PartitionLog, candidate: Candidate) -> SegmentFiles:
    """Return the files of a segment. Raise MissingSnapshot if the producers at its end are not known."""
    segment, end = candidate
    snapshot = log.producers.snapshot_path(end)
    if end not in log.producers.snapshots or not files.exists(snapshot):
        raise MissingSnapshot(
            f"{log.partition}: {segment.log.path} cannot be copied to the remote store, because {snapshot} is missing; "
            "it will not be copied before the log starts after it"
        )
    log_path, offset_index, time_index, transaction_index = segment.paths()
    epochs = [f"{epoch} {start}" for epoch, start in log.epochs.entries if start < end]
    return SegmentFiles(
        log=log_path,
        offset_index=offset_index,
        time_index=time_index,
        transaction_index=transaction_index if files.exists(transaction_index) else None,
        producer_snapshot=snapshot,
        leader_epochs=encode_entries(epochs),
    )


def epochs_between(
    epochs: Sequence[tuple[LeaderEpoch, Offset]], start: Offset, end: Offset
) -> list[tuple[LeaderEpoch, Offset]]:
    """Return the epochs of the records in a range, the first one from the start of the range."""
    inside = [(epoch, offset) for epoch, offset in epochs if start < offset < end]
    before = [epoch for epoch, offset in epochs if offset <= start]
    return [(before[-1], start), *inside] if before else inside
