"""Appends finished segments that a bulk load or a restore has written beside a log.

The load builds its own log in its own folder, with this code, and closes it. The log's owner then takes the files over
one by one, in the order of offsets. For each segment it moves the indexes first and the log file last, and makes that
durable before the next. After a crash meanwhile the log has the first segments, each complete, and the others are still
in their folder. No segment exists twice.

Segments that do not follow the log end are refused, and nothing is changed.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import SEGMENT_KINDS, Segment
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.records.batch import CorruptBatch


class NotAdoptable(Exception):
    """Segments that this log cannot take, with the reason. Nothing was changed."""


class Adopted(NamedTuple):
    segments: int
    bytes: int
    first_offset: Offset
    end_offset: Offset


def adopt(files: Files, log: PartitionLog, folder: str, leader_epoch: LeaderEpoch, now_ms: int) -> Adopted:
    """Take over the segments in `folder`. All their batches have `leader_epoch`, the log's current leader epoch.

    The log's owner moves its high watermark. Other files stay in the folder.
    """
    bases = staged_segments(files, folder)
    if not bases:
        raise NotAdoptable(f"{folder} has no segments")
    _check(files, log, folder, bases, leader_epoch)
    _make_room(log, bases[0], now_ms)
    size = 0
    for base in bases:
        segment = _moved(files, log, folder, base)
        size += segment.size
    active = log.segments.active
    end = active.next_offset()
    log.epochs.assign(leader_epoch, bases[0])
    log.marks.set_log_end(LogPosition(end, active.base_offset, active.size))
    log.producers.advance_to(end)
    log.producers.take_snapshot()
    log.durability.note_flushed(end, now_ms)  # the load has synced every file
    # Offsets may jump here. Recovery would take that for lost writes, unless it knows that they were durable.
    log.write_checkpoints()
    return Adopted(len(bases), size, bases[0], end)


def staged_segments(files: Files, folder: str) -> list[Offset]:
    """Return the base offsets of the segments in a folder."""
    parsed = [file_names.parse_segment_file(entry.name) for entry in files.entries(folder)]
    return sorted(base for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG and not suffix)


def _check(files: Files, log: PartitionLog, folder: str, bases: list[Offset], leader_epoch: LeaderEpoch) -> None:
    if bases[0] < log.log_end_offset:
        raise NotAdoptable(
            f"{log.partition} ends at offset {log.log_end_offset}, but the segments for it start at {bases[0]}"
        )
    latest = log.epochs.latest
    if latest is not None and latest.epoch > leader_epoch:
        raise NotAdoptable(f"{log.partition} is at leader epoch {latest.epoch}, but the segments have {leader_epoch}")
    for base in bases:
        for kind in (file_names.LOG, file_names.OFFSET_INDEX, file_names.TIME_INDEX):
            path = join(folder, file_names.segment_file(base, kind))
            if not files.exists(path):
                raise NotAdoptable(f"{path} is missing")
        try:
            _check_segment(files, log, folder, base, leader_epoch)
        except CorruptBatch as error:
            raise NotAdoptable(f"{error}") from None


def _check_segment(files: Files, log: PartitionLog, folder: str, base: Offset, leader_epoch: LeaderEpoch) -> None:
    """Check that the first and the last batch have this epoch, and are at the offsets of file name and index."""
    segment = Segment.open(files, folder, base, log.config, read_only=True)
    try:
        first = next(segment.headers(), None)
        if first is None or first.base_offset != base or first.leader_epoch != leader_epoch:
            raise NotAdoptable(f"{segment.log.path} does not start with a batch of epoch {leader_epoch} at {base}")
        segment.next_offset()
    finally:
        segment.release()


def _make_room(log: PartitionLog, first: Offset, now_ms: int) -> None:
    """Make an empty active segment at `first`."""
    active = log.segments.active
    if active.size == 0 and active.base_offset == first:
        return
    if log.log_start_offset == log.log_end_offset:
        log.truncate_fully(first, now_ms)  # the log is empty
    else:
        log.roll(now_ms, first_offset=first)


def _moved(files: Files, log: PartitionLog, folder: str, base: Offset) -> Segment:
    if log.segments.active.base_offset == base:
        log.segments.active.release()
        log.segments.remove(base)
    for kind in sorted(SEGMENT_KINDS, key=lambda kind: kind == file_names.LOG):
        name = file_names.segment_file(base, kind)
        if files.exists(join(folder, name)):
            files.replace(join(folder, name), join(log.directory, name))
    files.sync_directory(log.directory)
    segment = Segment.open(files, log.directory, base, log.config)
    log.segments.add(segment)
    return segment
