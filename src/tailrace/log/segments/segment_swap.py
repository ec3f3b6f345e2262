"""Replaces segments so that a crash at any step leaves either the old or the new ones, never a mix.

    1  the new files are complete and durable as `.cleaned`            crash: they are removed
    2  `.cleaned` → `.swap`, last segment first, durable one by one    crash: removed while any `.cleaned` is left
    3  the old files → `.deleted`, durable                             crash: the swap is completed
    4  `.swap` → no suffix, first segment first, durable one by one    crash: the swap is completed from there

Apache Kafka does the same renames. Here the folder is synced between the steps, so that this also works on file systems
that reorder them. `recovery.py` completes an interrupted swap.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList


def swap_segments(
    files: Files, directory: str, segments: SegmentList, new: Sequence[Segment], old: Sequence[Segment]
) -> None:
    """Replace `old` in the list with `new` (`.cleaned` files, sealed and flushed). The files of `old` become
    `.deleted`."""
    ordered = sorted(new, key=lambda segment: segment.base_offset)
    for segment in reversed(ordered):
        segment.rename(file_names.SWAP)
        files.sync_directory(directory)
    for segment in old:
        segments.remove(segment.base_offset)
    for segment in ordered:
        segments.add(segment)
    for segment in old:
        segment.rename(file_names.DELETED)
    files.sync_directory(directory)
    for segment in ordered:
        segment.rename("")
        files.sync_directory(directory)
