"""What is told Prometheus of throttled replication, and of cordoned log directories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.metrics.families import Family, Kind, Sample, gauge
from tailrace.replication.fetching.throttles import LeaderThrottle

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker


def replication_families(broker: Broker, now_ms: int) -> Iterator[Family]:
    leader, replication = broker.fetches.reader.quota, broker.replication
    quotas = {
        "leaderreplication": leader.quota if isinstance(leader, LeaderThrottle) else None,
        "followerreplication": None if replication is None else replication.throttle.quota,
        "alterlogdirsreplication": broker.moves.quota,
    }
    for name, quota in quotas.items():
        per_second = 0.0 if quota is None else quota.per_second(now_ms)
        yield gauge(f"kafka_server_{name}_byte_rate", "Bytes a second of replicas that may be throttled.", per_second)
    cordoned = {one.path: int(one.path in broker.logs.cordoned) for one in broker.logs.directories}
    prefix = "kafka_log_logmanager"
    yield gauge(f"{prefix}_cordonedlogdirectorycount", "Directories that get no new logs.", sum(cordoned.values()))
    yield Family(
        f"{prefix}_logdirectorycordoned",
        Kind.GAUGE,
        "1 if the directory gets no new logs.",
        [Sample({"logDirectory": path}, value) for path, value in cordoned.items()],
    )
