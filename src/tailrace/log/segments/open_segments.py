"""OpenSegments: the segments whose files are open, so that a process never has too many open files.

A segment opens its files when it is first used, and keeps them open for the next use. When more than `segments_max`
segments of a broker have open files, those of the segment that was opened first are closed. Its next use opens them
again. So neither the number of partitions nor the number of segments is limited by the descriptors of the process.

A segment with a mapped index holds three descriptors: its log file and two indexes.

Only the thread that owns the logs may use their segments. Another thread opens the files again (`reopened`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.log.disk.files import Files
from tailrace.log.segments.segment import Segment

DESCRIPTORS_OF_A_SEGMENT = 3
SEGMENTS_MAX = 1_000  # if the limit of the process is not known


class OpenSegments:
    def __init__(self, segments_max: int = SEGMENTS_MAX) -> None:
        self._segments_max = max(segments_max, 1)
        self._open: dict[Segment, None] = {}  # the one that was opened first is the first

    def watch(self, segments: Iterable[Segment]) -> None:
        """Close the files of these segments from now on when too many others were opened after them."""
        for segment in segments:
            segment.report_opening(self._opened)

    def _opened(self, segment: Segment) -> None:
        self._open.pop(segment, None)
        self._open[segment] = None
        while len(self._open) > self._segments_max:
            first = next(iter(self._open))
            del self._open[first]
            first.release()


def reopened(files: Files, segment: Segment) -> Segment:
    """Return a sealed segment with files of its own. Raise FileNotFoundError if its files were renamed meanwhile."""
    log = files.open(segment.log.path, read_only=True)
    return Segment(
        files,
        segment.directory,
        segment.base_offset,
        segment.config,
        log=log,
        size=segment.size,
        created_ms=segment.created_ms,
        suffix=segment.suffix,
    )
