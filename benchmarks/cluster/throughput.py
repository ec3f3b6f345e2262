"""acks=all at full speed: MB/s, and what a GB costs the leader and each follower."""

from __future__ import annotations

from benchmarks.broker.comparison import Comparison
from benchmarks.cluster.clusters import BROKERS, LEADER, Cluster
from benchmarks.cluster.producing import produce_for
from benchmarks.cluster.samples import Samples

TITLE = "Cluster: throughput"
TEXT = (
    "An idempotent librdkafka producer sends 1 KB records with acks=all to one partition on three brokers "
    "(min.insync.replicas 2), as fast as they are taken. CPU is that of the broker that leads, and the mean of the two "
    "that follow. The producer, three brokers and a controller share two cores."
)
SIZES = ((16_384, "16 KB"), (131_072, "128 KB"))
SECONDS = 10.0
WARM_UP_SECONDS = 15.0  # of each size


def warm_up(cluster: Cluster, *, quick: bool) -> None:
    topic = cluster.new_topic("warm-up", min_insync_replicas="2")
    for batch_bytes, _ in SIZES:
        produce_for(cluster.bootstrap, topic, WARM_UP_SECONDS / (5 if quick else 1), batch_bytes)
    cluster.delete_topic(topic)


def measure(cluster: Cluster, samples: Samples, *, quick: bool) -> None:
    for batch_bytes, name in SIZES:
        topic = cluster.new_topic("throughput", min_insync_replicas="2")
        before = cluster.cpu_s()
        size, took = produce_for(cluster.bootstrap, topic, SECONDS / (5 if quick else 1), batch_bytes)
        spent = {one: cpu - before[one] for one, cpu in cluster.cpu_s().items()}
        followers = [one for one in BROKERS if one != LEADER]
        samples.add(f"acks=all, {name} batches", cluster.kind, size / took / 1e6)
        samples.add(f"leader, {name} batches", cluster.kind, spent[LEADER] / size * 1e9)
        samples.add(
            f"follower, {name} batches",
            cluster.kind,
            sum(spent[one] for one in followers) / len(followers) / size * 1e9,
        )
        cluster.delete_topic(topic)


def rows(samples: Samples) -> list[Comparison]:
    found = []
    for _, name in SIZES:
        found.append(
            samples.row(f"acks=all, {name} batches", lambda rate: f"{rate:.0f} MB/s", more_is_better=True, at_most=0.7)
        )
        for who in ("leader", "follower"):
            found.append(samples.row(f"{who}, {name} batches", lambda cost: f"{cost:.2f} CPU s/GB", at_most=0.5))
    return found
