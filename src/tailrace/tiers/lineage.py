"""Lineage: the leader epochs of a partition's log, and the remote segments that agree with them.

A leader that lost an unclean election may have copied records that the log does not have. Its segments stay in the
store, and must neither be served nor counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from tailrace.log.leader_epochs import EpochEnd
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.tiers.metadata.segment_cache import SegmentCache
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState

Epochs: TypeAlias = Sequence[tuple[LeaderEpoch, Offset]]  # each with its first offset, in order


def epochs_with_records(epochs: Iterable[tuple[LeaderEpoch, Offset]]) -> list[tuple[LeaderEpoch, Offset]]:
    """Return the epochs without those that end where they start. The last one is kept."""
    entries = list(epochs)
    return [
        entry for entry, following in zip(entries, [*entries[1:], None], strict=True)
        if following is None or entry[1] != following[1]
    ]  # fmt: skip


def is_within_epochs(segment: RemoteSegment, log_end: Offset, lineage: Epochs) -> bool:
    """Return True if the segment has the records that the log had or has. `lineage` are its epochs with records.

    Epochs inside the segment must be the log's own. Its first epoch may start later than in the log, or earlier than
    the log does now. Its last epoch may end earlier than in the log.
    """
    own = epochs_with_records(segment.leader_epochs)
    if not lineage or not own:
        return False
    first, last = own[0][0], own[-1][0]
    if last < lineage[0][0] or last > lineage[-1][0] or segment.end_offset >= log_end:
        return False
    known = dict(lineage)
    following = dict(zip([epoch for epoch, _ in lineage], lineage[1:], strict=False))
    first = next((epoch for epoch, _ in own if epoch >= lineage[0][0]), last)
    for slot, (epoch, start) in enumerate(own):
        if epoch < first:
            continue
        if epoch not in known:
            return False
        if epoch == first and epoch != lineage[0][0] and start < known[epoch]:
            return False
        after = following.get(epoch)
        if epoch == last:
            if after is not None and segment.end_offset > after[1] - 1:
                return False
        elif after != own[slot + 1]:
            return False
    return True


def highest_remote_offset(
    cache: SegmentCache, epochs: Epochs, log_start: Offset, end_of: Callable[[LeaderEpoch], EpochEnd]
) -> tuple[Offset, LeaderEpoch]:
    """Return the last offset of the log that was copied, with its epoch; (-1, -1) if nothing was.

    Records from the log start on count only if the store still has them. They are deleted if tiered storage was
    disabled meanwhile. Kafka counts them, and then deletes the local copies of records that the store does not have.
    """
    for epoch, _ in reversed(epochs):
        highest = cache.highest_offset(epoch)
        if highest is not None and highest >= log_start:
            highest = cache.highest_readable(epoch)
        if highest is not None:
            end = end_of(epoch)
            return (end.end_offset - 1, end.epoch) if end.end_offset <= highest else (highest, epoch)
    return -1, -1


def remote_log_start(cache: SegmentCache, epochs: Epochs) -> Offset | None:
    """Return the start of the first readable segment of the earliest epoch that has one. A segment whose deletion has
    begun is not readable: the log started after it, although a crash may have lost that."""
    for epoch, _ in epochs:
        for segment in cache.in_epoch(epoch):
            if segment.state is RemoteSegmentState.COPY_SEGMENT_FINISHED:
                return segment.start_offset
    return None
