"""Finished segments, written beside a log by somebody else, taken in at its end: bulk loads and restores.

Whoever loads builds a log of its own in a folder of its own, with this code, and leaves it closed. The log's owner
takes the files over one by one, in the order of offsets: of each segment the indexes first and the log file last, and
makes that durable before the next, so that a crash on the way leaves the log with whole segments, the first ones, and
the others where they were. Nothing is ever there twice.

What does not follow the log's end is refused, and then nothing is touched.
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
    """Segments that this log cannot take; says why. Nothing was changed."""


class Adopted(NamedTuple):
    segments: int
    bytes: int
    first_offset: Offset
    end_offset: Offset


def adopt(files: Files, log: PartitionLog, folder: str, leader_epoch: LeaderEpoch, now_ms: int) -> Adopted:
    """Take the segments in `folder` over; all their batches are of `leader_epoch`, under which the log is led now.

    Whoever owns the log moves its high watermark. The folder keeps what is no segment.
    """
    bases = staged_segments(files, folder)
    if not bases:
        raise NotAdoptable(f"there are no segments in {folder}")
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
    log.producers.end_offset = end
    log.producers.take_snapshot()
    log.durability.note_flushed(end, now_ms)  # its writer synced every file before it let go
    # Offsets may jump here; recovery takes that for lost writes where it does not know that they were durable.
    log.write_checkpoints()
    return Adopted(len(bases), size, bases[0], end)


def staged_segments(files: Files, folder: str) -> list[Offset]:
    """The base offsets of the segments that wait in a folder."""
    parsed = [file_names.parse_segment_file(entry.name) for entry in files.entries(folder)]
    return sorted(base for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG and not suffix)


def _check(files: Files, log: PartitionLog, folder: str, bases: list[Offset], leader_epoch: LeaderEpoch) -> None:
    if bases[0] < log.log_end_offset:
        raise NotAdoptable(
            f"{log.partition} ends at offset {log.log_end_offset}, and the segments for it start at {bases[0]}"
        )
    latest = log.epochs.latest
    if latest is not None and latest.epoch > leader_epoch:
        raise NotAdoptable(f"{log.partition} is at leader epoch {latest.epoch}, and the segments are of {leader_epoch}")
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
    """Its first and its last batch are of this epoch, and lie where its name and its index say."""
    segment = Segment.open(files, folder, base, log.config, read_only=True)
    try:
        first = next(segment.headers(), None)
        if first is None or first.base_offset != base or first.leader_epoch != leader_epoch:
            raise NotAdoptable(f"{segment.log.path} does not start with a batch of epoch {leader_epoch} at {base}")
        segment.next_offset()
    finally:
        segment.release()


def _make_room(log: PartitionLog, first: Offset, now_ms: int) -> None:
    """Have an empty active segment at `first`."""
    active = log.segments.active
    if active.size == 0 and active.base_offset == first:
        return
    if log.log_start_offset == log.log_end_offset:
        log.truncate_fully(first, now_ms)  # nothing was ever here, or all of it is gone
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
