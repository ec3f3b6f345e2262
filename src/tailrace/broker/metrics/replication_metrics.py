"""Metrics of throttled replication and of cordoned log directories."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.broker.services import Services
from tailrace.metrics.families import Family, Kind, Sample, gauge
from tailrace.replication.fetching.throttles import LeaderThrottle


def replication_families(services: Services, now_ms: int) -> Iterator[Family]:
    leader, replication = services.fetches.reader.quota, services.replication
    quotas = {
        "leaderreplication": leader.quota if isinstance(leader, LeaderThrottle) else None,
        "followerreplication": None if replication is None else replication.throttle.quota,
        "alterlogdirsreplication": services.moves.quota,
    }
    for name, quota in quotas.items():
        per_second = 0.0 if quota is None else quota.per_second(now_ms)
        yield gauge(f"kafka_server_{name}_byte_rate", "Bytes per second of throttled replicas.", per_second)
    cordoned = {one.path: int(one.path in services.logs.cordoned) for one in services.logs.directories}
    prefix = "kafka_log_logmanager"
    yield gauge(
        f"{prefix}_cordonedlogdirectorycount",
        "Cordoned log directories, which get no new partitions.",
        sum(cordoned.values()),
    )
    yield Family(
        f"{prefix}_logdirectorycordoned",
        Kind.GAUGE,
        "1 if the log directory is cordoned.",
        [Sample({"logDirectory": path}, value) for path, value in cordoned.items()],
    )
