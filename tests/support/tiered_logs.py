"""Copies the sealed segments of a log into a remote store, as a broker's copy task does."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from itertools import pairwise

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset, TopicId
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId
from tailrace.tiers.stores.remote_store import RemoteStore, SegmentFiles

TOPIC_ID = TopicId.parse("tierTopicIdTierTopicId")
TIMEOUT_MS = 60_000


def segment_id(number: int, topic: str = "topic", partition: int = 0, topic_id: TopicId = TOPIC_ID) -> RemoteSegmentId:
    return RemoteSegmentId(topic_id, topic, partition, uuid.UUID(int=(0xABCDEF << 100) + number))


def sealed_segments(log: PartitionLog) -> list[tuple[Segment, Offset]]:
    """Return the sealed segments with the first offset after each."""
    return [(one, following.base_offset) for one, following in pairwise(list(log.segments))]


def described(
    segment: Segment, next_offset: Offset, one: RemoteSegmentId, epochs: Iterable[tuple[int, Offset]], now_ms: int = 1
) -> RemoteSegment:
    return RemoteSegment(
        one,
        segment.base_offset,
        next_offset - 1,
        broker_id=1,
        max_timestamp_ms=segment.largest.timestamp,
        event_timestamp_ms=now_ms,
        leader_epochs=epochs_inside(epochs, segment.base_offset, next_offset),
        size=segment.size,
        txn_index_empty=not segment.transaction_index.entries,
    )


def epochs_inside(
    epochs: Iterable[tuple[int, Offset]], start: Offset, next_offset: Offset
) -> tuple[tuple[int, Offset], ...]:
    """Return the epochs of a segment, with their first offsets in it."""
    entries = [*epochs, (-1, next_offset)]
    return tuple((epoch, max(first, start)) for (epoch, first), (_, end) in pairwise(entries) if end > start)


def files_of_segment(
    files: Files, folder: str, segment: Segment, next_offset: Offset, epochs: Iterable[tuple[int, Offset]]
) -> SegmentFiles:
    def path(offset: Offset, kind: str) -> str:
        return join(folder, file_names.segment_file(offset, kind))

    rows = [(epoch, first) for epoch, first in epochs if first < next_offset]
    checkpoint = "".join(f"{line}\n" for line in ("0", len(rows), *(f"{epoch} {first}" for epoch, first in rows)))
    transactions = path(segment.base_offset, file_names.TRANSACTION_INDEX)
    return SegmentFiles(
        path(segment.base_offset, file_names.LOG),
        path(segment.base_offset, file_names.OFFSET_INDEX),
        path(segment.base_offset, file_names.TIME_INDEX),
        transactions if files.exists(transactions) else None,
        path(next_offset, file_names.PRODUCER_SNAPSHOT),
        checkpoint.encode(),
    )


def copy_log(
    store: RemoteStore,
    log: PartitionLog,
    files: Files,
    folder: str,
    *,
    topic: str = "topic",
    partition: int = 0,
    topic_id: TopicId = TOPIC_ID,
    first_number: int = 1,
    keep: slice = slice(None),
) -> list[RemoteSegment]:
    """Copy the sealed segments of a log, and return their metadata."""
    for segment in log.segments:
        segment.flush()
    epochs = epochs_of(files, folder)
    copied = []
    for number, (segment, next_offset) in enumerate(sealed_segments(log)[keep], first_number):
        remote = described(segment, next_offset, segment_id(number, topic, partition, topic_id), epochs)
        store.copy_segment(remote, files_of_segment(files, folder, segment, next_offset, epochs), TIMEOUT_MS)
        copied.append(remote)
    return copied


def epochs_of(files: Files, folder: str) -> list[tuple[int, Offset]]:
    checkpoint = LeaderEpochs(files, join(folder, file_names.LEADER_EPOCH_CHECKPOINT))
    checkpoint.load()
    return [(one.epoch, one.start_offset) for one in checkpoint.entries]
