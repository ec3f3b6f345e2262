"""`.broken` files: recovery removes nothing that may hold records, it keeps the bytes beside the log."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.inspect.resync import next_position
from tailrace.log.recovery.recovery_scan import check_batch
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.records.batch import CorruptBatch

_COPY_CHUNK = 1024 * 1024


def has_whole_batch(segment: Segment, position: int) -> bool:
    """Return True if the bytes from a position on contain a batch with a valid checksum, perhaps with a wrong
    offset."""
    try:
        check_batch(*next(segment.batches(position)))
        return True
    except CorruptBatch:
        return next_position(segment.log, position, segment.size, segment.base_offset, None) is not None


def copy_tail(files: Files, directory: str, segment: Segment, position: int) -> str:
    """Copy the bytes of a segment from a position on. Return the path of the copy."""
    target = f"{segment.log.path}.{position}.broken"
    copy = files.open(target, create=True)
    try:
        copy.truncate(0)
        done = 0
        while position + done < segment.size:
            chunk = segment.log.read(position + done, min(_COPY_CHUNK, segment.size - position - done))
            if not chunk:
                break
            copy.write(done, chunk)
            done += len(chunk)
        copy.sync()
    finally:
        copy.close()
    files.sync_directory(directory)
    return target


def set_segments_aside(files: Files, directory: str, segments: SegmentList, later: Sequence[Segment]) -> list[str]:
    """Rename the data of segments, and remove their indexes. Return the new paths."""
    kept = []
    for segment in reversed(later):
        segments.remove(segment.base_offset)
        segment.release()
        if segment.size:
            target = f"{segment.log.path}.broken"
            files.replace(segment.log.path, target)
            kept.append(target)
        segment.remove_files()
        files.remove(join(directory, file_names.segment_file(segment.base_offset, file_names.PRODUCER_SNAPSHOT)))
        files.sync_directory(directory)
    return kept
