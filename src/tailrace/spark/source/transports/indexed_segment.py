"""IndexedSegment: the positions where a segment can be cut, from its offset index.

If an index is wrong, the slices differ in size. Their records are still correct, because slices are bounded by offsets,
not by positions.
"""

from __future__ import annotations

from tailrace.log.segments.indexes import index_kernels
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset
from tailrace.spark.source.planning.planning import CutPoint


class IndexedSegment:
    def __init__(self, segment: Segment, end_offset: Offset) -> None:
        self._segment = segment
        self._end_offset = end_offset

    @property
    def base_offset(self) -> Offset:
        return self._segment.base_offset

    @property
    def size(self) -> int:
        return self._segment.size

    def position_of(self, offset: Offset) -> int:
        if offset >= self._end_offset:
            return self.size
        return min(self._segment.offset_index.lookup(offset).position, self.size)

    def cut_after(self, position: int) -> CutPoint | None:
        index = self._segment.offset_index
        slot = index_kernels.position_index_slot(index.file.data, index.count, position - 1) + 1
        if slot >= index.count:
            return None
        entry = index.entry(slot)
        return CutPoint(entry.offset + 1, entry.position)
