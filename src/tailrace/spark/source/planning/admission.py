"""How much of what there is a stream takes into its next batch."""

from __future__ import annotations

from math import ceil, floor

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.source.planning.offset_ranges import Offsets


def admitted(starts: Offsets, latest: Offsets, max_offsets: int) -> dict[TopicPartition, Offset]:
    """Ends of the next batch: at most about max_offsets, shared among partitions by what each has waiting.

    As Spark's Kafka source shares them: a partition with anything waiting gets at least one.
    """
    waiting = {partition: max(0, end - starts.get(partition, 0)) for partition, end in latest.items()}
    total = sum(waiting.values())
    if total <= max_offsets:
        return dict(latest)
    ends = {}
    for partition, end in latest.items():
        share = max_offsets * (waiting[partition] / total)
        taken = ceil(share) if share < 1 else floor(share)
        ends[partition] = min(end, starts.get(partition, 0) + taken) if waiting[partition] else end
    return ends


def is_too_little(starts: Offsets, latest: Offsets, min_offsets: int, waited_ms: float, max_delay_ms: int) -> bool:
    """Whether to wait for more: less than min_offsets are there, and the last batch is not long ago."""
    waiting = sum(max(0, end - starts.get(partition, 0)) for partition, end in latest.items())
    return waiting < min_offsets and waited_ms < max_delay_ms
