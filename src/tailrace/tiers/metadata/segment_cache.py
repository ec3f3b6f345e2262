"""SegmentCache: the remote segments of one partition, found by leader epoch and offset.

    null ─► COPY_SEGMENT_STARTED ─► COPY_SEGMENT_FINISHED ─► DELETE_SEGMENT_STARTED ─► DELETE_SEGMENT_FINISHED
                     └───────────────────────────────────────────────┘

A record may repeat the state that a segment has. Any other step is ignored, with a line in the log.

- Only a segment in COPY_SEGMENT_FINISHED can be read. Segments in the first three states are listed for clean-up. The
  last state removes a segment.
- After an election two segments may have the same records. The segments of each leader epoch are therefore a list of
  their own, ordered by start offset. A longer copy replaces the copies that it contains; they stay listed for clean-up.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.tiers.metadata.segment_records import SegmentUpdate
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState

_log = logging.getLogger(__name__)

_STARTED: Final = RemoteSegmentState.COPY_SEGMENT_STARTED
_FINISHED: Final = RemoteSegmentState.COPY_SEGMENT_FINISHED
_DELETE_STARTED: Final = RemoteSegmentState.DELETE_SEGMENT_STARTED
_DELETED: Final = RemoteSegmentState.DELETE_SEGMENT_FINISHED
_NEXT: Final[dict[RemoteSegmentState | None, tuple[RemoteSegmentState, ...]]] = {
    None: (_STARTED,),
    _STARTED: (_STARTED, _FINISHED, _DELETE_STARTED),
    _FINISHED: (_FINISHED, _DELETE_STARTED),
    _DELETE_STARTED: (_DELETE_STARTED, _DELETED),
    _DELETED: (_DELETED,),
}


class UnknownSegment(Exception):
    """A new state of a segment that was never added."""

    def __init__(self, segment_id: RemoteSegmentId) -> None:
        super().__init__(f"no remote segment {segment_id.text} of {segment_id.topic}-{segment_id.partition} is known")


class CacheState(NamedTuple):
    """The contents of a cache. Each epoch has its readable segments by start offset, and the highest copied offset."""

    segments: tuple[RemoteSegment, ...]
    epochs: tuple[tuple[LeaderEpoch, tuple[RemoteSegmentId, ...], Offset | None], ...]


class SegmentCache:
    def __init__(self) -> None:
        self._segments: dict[RemoteSegmentId, RemoteSegment] = {}
        self._epochs: dict[LeaderEpoch, _EpochSegments] = {}

    def state(self) -> CacheState:
        return CacheState(
            tuple(self._segments.values()),
            tuple((epoch, tuple(one.ids), one.highest) for epoch, one in self._epochs.items()),
        )

    def restore(self, state: CacheState) -> None:
        """Replace the contents."""
        self._segments = {one.segment_id: one for one in state.segments}
        self._epochs = {}
        for segment in state.segments:
            for epoch, _ in segment.leader_epochs:
                self._epoch(epoch).unreferenced.add(segment.segment_id)
        for epoch, readable, highest in state.epochs:
            segments = self._epoch(epoch)
            segments.ids = list(readable)
            segments.starts = [dict(self._segments[one].leader_epochs)[epoch] for one in readable]
            segments.unreferenced -= set(readable)
            segments.highest = highest

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def has_epochs(self) -> bool:
        """True if segments were ever added."""
        return bool(self._epochs)

    def get(self, segment_id: RemoteSegmentId) -> RemoteSegment | None:
        return self._segments.get(segment_id)

    # Changes

    def add(self, segment: RemoteSegment) -> None:
        """Add a segment whose copy has started."""
        known = self._segments.get(segment.segment_id)
        if segment.state is not _STARTED or not self._may_become(known, segment.state, segment.segment_id):
            return
        for epoch, _ in segment.leader_epochs:
            self._epoch(epoch).unreferenced.add(segment.segment_id)
        self._segments[segment.segment_id] = segment

    def update(self, update: SegmentUpdate, *, is_initialized: bool = True) -> None:
        """Change the state of a segment. While the records are read for the first time, a segment that is not known was
        deleted long ago; later it raises UnknownSegment."""
        known = self._segments.get(update.segment_id)
        if known is None:
            if is_initialized:
                raise UnknownSegment(update.segment_id)
            return
        if update.state is _STARTED or not self._may_become(known, update.state, update.segment_id):
            return
        segment = replace(
            known,
            broker_id=update.broker_id,
            event_timestamp_ms=update.event_timestamp_ms,
            custom_metadata=update.custom_metadata,
            state=update.state,
        )
        for epoch, start in segment.leader_epochs:
            segments = self._epoch(epoch)
            if update.state is _FINISHED:
                segments.finish(start, segment.segment_id, end_of_epoch(segment, epoch))
            elif update.state is _DELETE_STARTED:
                segments.start_deletion(start, segment.segment_id)
            else:
                segments.unreferenced.discard(segment.segment_id)
        if update.state is _DELETED:
            del self._segments[segment.segment_id]
        else:
            self._segments[segment.segment_id] = segment

    def _epoch(self, epoch: LeaderEpoch) -> _EpochSegments:
        return self._epochs.setdefault(epoch, _EpochSegments())

    def _may_become(self, known: RemoteSegment | None, state: RemoteSegmentState, segment_id: RemoteSegmentId) -> bool:
        before = None if known is None else known.state
        if state in _NEXT[before]:
            return True
        _log.error(
            "%s-%d: remote segment %s cannot become %s after %s; the record is ignored",
            segment_id.topic,
            segment_id.partition,
            segment_id.text,
            state.name,
            "nothing" if before is None else before.name,
        )
        return False

    # Lookups

    def find(self, epoch: LeaderEpoch, offset: Offset) -> RemoteSegment | None:
        """Return the readable segment that has this offset, written in this epoch."""
        segments = self._epochs.get(epoch)
        segment_id = None if segments is None else segments.floor(offset)
        if segment_id is None:
            return None
        segment = self._segments[segment_id]
        return None if offset > end_of_epoch(segment, epoch) else segment

    def next_with_transactions(self, epoch: LeaderEpoch, offset: Offset) -> RemoteSegment | None:
        """Return the first segment from an offset on that may have a transaction index, within the epoch."""
        segment = self.find(epoch, offset)
        while segment is not None and segment.txn_index_empty:
            segment = self.find(epoch, segment.end_offset + 1)
        return segment

    def highest_offset(self, epoch: LeaderEpoch) -> Offset | None:
        """Return the highest offset of an epoch that was ever copied, also if it is deleted now."""
        segments = self._epochs.get(epoch)
        return None if segments is None else segments.highest

    def highest_readable(self, epoch: LeaderEpoch) -> Offset | None:
        """Return the highest offset of an epoch that can be read."""
        segments = self._epochs.get(epoch)
        ends = [] if segments is None else [end_of_epoch(self._segments[one], epoch) for one in segments.ids[-1:]]
        return max(ends, default=None)

    def all(self) -> list[RemoteSegment]:
        return list(self._segments.values())

    def in_epoch(self, epoch: LeaderEpoch) -> list[RemoteSegment]:
        """Return the segments with records of an epoch, by start offset, in all states but the last."""
        segments = self._epochs.get(epoch)
        if segments is None:
            return []
        found = [self._segments[one] for one in segments.ids]
        if segments.unreferenced:
            found += [self._segments[one] for one in segments.unreferenced]
            found.sort(key=lambda segment: segment.start_offset)
        return found

    def epochs(self) -> Iterable[LeaderEpoch]:
        """Return the epochs of the segments, in order."""
        return sorted({epoch for segment in self._segments.values() for epoch, _ in segment.leader_epochs})

    def size_of_epoch(self, epoch: LeaderEpoch) -> int:
        """Return the total size of the segments with records of an epoch."""
        return sum(segment.size for segment in self.in_epoch(epoch))


def end_of_epoch(segment: RemoteSegment, epoch: LeaderEpoch) -> Offset:
    """Return the last offset of an epoch within a segment."""
    starts = [start for other, start in segment.leader_epochs if other > epoch]
    return min(starts) - 1 if starts else segment.end_offset


class _EpochSegments:
    """The segments with records of one leader epoch."""

    __slots__ = ("highest", "ids", "starts", "unreferenced")

    def __init__(self) -> None:
        self.starts: list[Offset] = []  # of the readable segments
        self.ids: list[RemoteSegmentId] = []
        self.unreferenced: set[RemoteSegmentId] = set()  # all others
        self.highest: Offset | None = None

    def finish(self, start: Offset, segment_id: RemoteSegmentId, end: Offset) -> None:
        """Make a segment readable, in place of those that it contains."""
        while self.starts and self.starts[-1] >= start and self.highest is not None and self.highest <= end:
            self.starts.pop()
            self.unreferenced.add(self.ids.pop())
        slot = bisect_left(self.starts, start)
        if slot < len(self.starts) and self.starts[slot] == start:
            self.ids[slot] = segment_id
        else:
            self.starts.insert(slot, start)
            self.ids.insert(slot, segment_id)
        self.unreferenced.discard(segment_id)
        if self.highest is None or end > self.highest:
            self.highest = end

    def start_deletion(self, start: Offset, segment_id: RemoteSegmentId) -> None:
        slot = bisect_left(self.starts, start)
        if slot < len(self.ids) and self.ids[slot] == segment_id:
            del self.starts[slot], self.ids[slot]
        self.unreferenced.add(segment_id)

    def floor(self, offset: Offset) -> RemoteSegmentId | None:
        slot = bisect_right(self.starts, offset) - 1
        return self.ids[slot] if slot >= 0 else None
