"""Metrics of share groups."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.broker.shares.shares import Shares
from tailrace.metrics.families import Family, Kind, Sample, counter, gauge
from tailrace.shares.acknowledging import AcknowledgeType

_COUNTED = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)


def share_families(shares: Shares) -> Iterator[Family]:
    sessions, partitions = shares.sessions, shares.partitions
    prefix = "kafka_server_sharesessioncache"
    yield gauge(f"{prefix}_sharesessionscount", "Cached share sessions.", len(sessions))
    yield gauge(f"{prefix}_sharepartitionscount", "Partitions in share sessions.", sessions.partition_count)
    in_flight = sum(hosted.share.in_flight_count for hosted in partitions.shares())
    yield gauge(
        "tailrace_share_records_in_flight",
        "Records in flight in share groups: not yet acknowledged or archived.",
        in_flight,
    )
    yield counter(
        "tailrace_share_records_acquired", "Records acquired by members of share groups.", partitions.acquired_records
    )
    yield counter(
        "tailrace_share_lock_timeouts",
        "Records that were not acknowledged before their lock expired.",
        partitions.lock_timeouts,
    )
    yield Family(
        "kafka_server_sharegroupmetrics_recordacknowledgements",
        Kind.COUNTER,
        "Records acknowledged by members.",
        [Sample({"ack_type": kind.name.lower()}, partitions.acknowledged_records[kind]) for kind in _COUNTED],
    )
