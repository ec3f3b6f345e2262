"""The offset ranges of a batch query, limited by its options and conditions."""

from __future__ import annotations

from tailrace.spark.source.options import ReadOptions
from tailrace.spark.source.planning.data_loss import readable_ranges
from tailrace.spark.source.planning.offset_ranges import OffsetRange, resolve_end
from tailrace.spark.source.planning.pruning import LONG_MIN, Narrowing
from tailrace.spark.source.starting_offsets import starting_offsets
from tailrace.spark.source.transports.transport import Transport


def planned_ranges(transport: Transport, options: ReadOptions, conditions: Narrowing) -> list[OffsetRange]:
    partitions = transport.partitions(options.selection)
    starts = starting_offsets(options, partitions, transport)
    ends = resolve_end(options.ending, partitions, transport)
    ranges = readable_ranges(starts, ends, transport, fail_on_data_loss=options.fail_on_data_loss)
    return from_time(conditions.apply(ranges), conditions, transport)


def from_time(ranges: list[OffsetRange], conditions: Narrowing, transport: Transport) -> list[OffsetRange]:
    """Start the ranges at the first record at or after the minimum timestamp; earlier records cannot pass."""
    # Records without a timestamp have -1, which a lookup by time does not find.
    if conditions.min_timestamp == LONG_MIN or conditions.min_timestamp <= 0 or not ranges:
        return ranges
    found = transport.at_times({wanted.partition: conditions.min_timestamp for wanted in ranges})
    result = []
    for wanted in ranges:
        first = found[wanted.partition]
        if first is not None and first < wanted.end:
            result.append(OffsetRange(wanted.partition, max(wanted.start, first), wanted.end))
    return result
