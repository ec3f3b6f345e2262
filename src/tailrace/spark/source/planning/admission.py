"""Limits the offsets of a stream's next micro-batch."""

from __future__ import annotations

from math import ceil, floor

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.source.planning.offset_ranges import Offsets


def admitted(starts: Offsets, latest: Offsets, max_offsets: int) -> dict[TopicPartition, Offset]:
    """Return the end offsets of the next batch, of about max_offsets in total.

    Partitions get shares in proportion to their unread offsets, at least one each, as in Spark's Kafka source.
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


def should_wait(starts: Offsets, latest: Offsets, min_offsets: int, waited_ms: float, max_delay_ms: int) -> bool:
    """Return True if the next batch should wait: fewer than min_offsets are unread, and max_delay_ms is not over."""
    waiting = sum(max(0, end - starts.get(partition, 0)) for partition, end in latest.items())
    return waiting < min_offsets and waited_ms < max_delay_ms
