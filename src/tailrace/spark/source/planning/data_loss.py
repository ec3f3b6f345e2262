"""failOnDataLoss: what happens if a query asks for offsets that the log does not have."""

from __future__ import annotations

from tailrace.spark.source.errors import OffsetRangeLost
from tailrace.spark.source.planning.offset_ranges import Bounds, OffsetRange, Offsets


def readable_ranges(starts: Offsets, ends: Offsets, bounds: Bounds, *, fail_on_data_loss: bool) -> list[OffsetRange]:
    """Return the ranges that are not empty, limited to the offsets in the logs.

    An offset outside its log is data loss, and raises OffsetRangeLost. Without fail_on_data_loss, the remaining records
    are read.
    """
    partitions = sorted(ends)
    earliest, latest = bounds.earliest(partitions), bounds.latest(partitions)
    ranges = []
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        first, last = earliest[partition], latest[partition]
        if fail_on_data_loss:
            if start < first and start < end:
                raise OffsetRangeLost(partition, start, min(end, first), f"the log starts at {first}")
            if start > last:
                raise OffsetRangeLost(partition, last, start, f"the log ends at {last}")
            if end > last:
                raise OffsetRangeLost(partition, max(start, last), end, f"the log ends at {last}")
        start, end = max(start, first), min(end, last)
        if start < end:
            ranges.append(OffsetRange(partition, start, end))
    return ranges
