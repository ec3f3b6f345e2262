"""Putting new segments in place of old ones so that a crash at any step leaves one or the other, never a mix.

    1  the new files are complete and durable as `.cleaned`            crash: they are thrown away
    2  `.cleaned` → `.swap`, last segment first, durable one by one    crash: thrown away while any `.cleaned` is left
    3  the old files → `.deleted`, durable                             crash: the swap is carried on
    4  `.swap` → no suffix, first segment first, durable one by one    crash: the swap is carried on from there

Apache Kafka does the same renames; the folder is synced between the steps here, so that they also hold on file systems
that reorder them. `recovery.py` carries an interrupted swap on.
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
    """Put `new` (`.cleaned` files, sealed and flushed) into the list in place of `old`, which becomes `.deleted`."""
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
