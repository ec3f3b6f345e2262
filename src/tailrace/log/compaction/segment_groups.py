"""group_segments: the neighbouring segments that compaction writes into one segment."""

from __future__ import annotations

from tailrace.log.compaction.cleaned_segment import with_following
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX


def group_segments(
    segments: list[Segment], max_bytes: int, max_index_bytes: int, end_offset: Offset
) -> list[list[Segment]]:
    """Group neighbouring segments while their sizes and the sizes of their indexes do not exceed the limits of one
    segment.

    The last offset of a segment is taken as the next segment's base offset minus one, or `end_offset` minus one.
    Offsets in a group must fit 31 bits relative to its start.
    """
    groups: list[list[Segment]] = []
    size = offset_index_size = time_index_size = 0
    for segment, following in with_following(segments):
        end = following.base_offset if following else end_offset
        offset_bytes, time_bytes = segment.offset_index.count * 8, segment.time_index.count * 12
        if (
            groups
            and size + segment.size <= max_bytes
            and offset_index_size + offset_bytes <= max_index_bytes
            and time_index_size + time_bytes <= max_index_bytes
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= INT_MAX)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = offset_index_size = time_index_size = 0
        size += segment.size
        offset_index_size += offset_bytes
        time_index_size += time_bytes
    return groups
