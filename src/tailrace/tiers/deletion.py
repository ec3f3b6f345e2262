"""Deletion of remote segments: the start is published, the store deletes the files, the end is published.

After a crash in between, the segment is known to be partly deleted. It cannot be read, and the next expiration deletes
it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from tailrace.model.ids import BrokerId
from tailrace.tiers.metadata.segment_records import SegmentUpdate, encode_update
from tailrace.tiers.remote_counters import RemoteCounters
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tailrace.tiers.steps import Beside, Publish, RemoteSteps
from tailrace.tiers.stores.remote_store import RemoteStorageError, RemoteStore, RetriableRemoteStorageError

_DELETE_MS: Final = 240_000  # a segment has several objects


def state_record(
    segment: RemoteSegment,
    state: RemoteSegmentState,
    broker_id: BrokerId,
    now_ms: int,
    custom_metadata: bytes | None = None,
) -> Publish:
    """Return the step that publishes a new state of a segment."""
    custom_metadata = segment.custom_metadata if custom_metadata is None else custom_metadata
    update = SegmentUpdate(segment.segment_id, state, now_ms, broker_id, custom_metadata)
    return Publish(segment.segment_id, encode_update(update))


def delete_segment(
    store: RemoteStore, segment: RemoteSegment, broker_id: BrokerId, counters: RemoteCounters, now_ms: int
) -> RemoteSteps[int]:
    """Delete a segment. Return the time."""
    _, now_ms = yield state_record(segment, RemoteSegmentState.DELETE_SEGMENT_STARTED, broker_id, now_ms)
    now_ms = yield from _delete_files(store, segment, counters)
    _, now_ms = yield state_record(segment, RemoteSegmentState.DELETE_SEGMENT_FINISHED, broker_id, now_ms)
    return now_ms


def _delete_files(store: RemoteStore, segment: RemoteSegment, counters: RemoteCounters) -> RemoteSteps[int]:
    counters.delete_requests += 1
    try:
        _, now_ms = yield Beside(partial(store.delete_segment, segment), _DELETE_MS)
    except RetriableRemoteStorageError:
        raise
    except RemoteStorageError:
        counters.delete_errors += 1
        raise
    return now_ms


def delete_all(
    store: RemoteStore,
    segments: Iterable[RemoteSegment],
    broker_id: BrokerId,
    counters: RemoteCounters,
    forget: Callable[[RemoteSegment], None],
    now_ms: int,
) -> RemoteSteps[int]:
    """Delete the remote log of a partition: every start is published before the first file is deleted. Return the
    time. `forget` drops what is cached of a segment."""
    going = list(segments)
    for segment in going:
        _, now_ms = yield state_record(segment, RemoteSegmentState.DELETE_SEGMENT_STARTED, broker_id, now_ms)
    for segment in going:
        now_ms = yield from _delete_files(store, segment, counters)
        forget(segment)
    for segment in going:
        _, now_ms = yield state_record(segment, RemoteSegmentState.DELETE_SEGMENT_FINISHED, broker_id, now_ms)
    return now_ms
