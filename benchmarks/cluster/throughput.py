"""acks=all at full speed: MB/s, and the CPU cost of a GB for the leader and each follower."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison
from benchmarks.broker.load import run_requests
from benchmarks.cluster.clusters import BROKERS, LEADER, Cluster
from benchmarks.cluster.producing import produce_for
from benchmarks.cluster.samples import Samples
from tailrace.protocol.messages import MetadataRequest
from tests.support.raw_client import RawClient

TITLE = "Cluster: throughput"
TEXT = (
    "An idempotent librdkafka producer sends 1 KB records with acks=all to one partition on three brokers "
    "(min.insync.replicas 2), at full speed. CPU is that of the leader, and the mean of the two followers. The "
    "producer, three brokers and a controller share two cores. librdkafka mostly has one request per partition in "
    "flight. The rows with five in flight are from a load generator that sends like Java's producer."
)
SIZES = ((16_384, "16 KB"), (131_072, "128 KB"))
PIPELINED = "16 KB batches, five in flight"
SECONDS = 10.0
WARM_UP_SECONDS = 15.0  # for each batch size


def warm_up(cluster: Cluster, *, quick: bool) -> None:
    topic = cluster.new_topic("warm-up", min_insync_replicas="2")
    for batch_bytes, _ in SIZES:
        produce_for(cluster.bootstrap, topic, WARM_UP_SECONDS / (5 if quick else 1), batch_bytes)
    cluster.delete_topic(topic)


def measure(cluster: Cluster, samples: Samples, *, quick: bool) -> None:
    seconds = SECONDS / (5 if quick else 1)
    for batch_bytes, name in SIZES:
        _measure(
            cluster,
            samples,
            f"{name} batches",
            lambda topic, size=batch_bytes: produce_for(cluster.bootstrap, topic, seconds, size),
        )
    _measure(cluster, samples, PIPELINED, lambda topic: _produce_pipelined(cluster, topic, seconds))


def _measure(cluster: Cluster, samples: Samples, name: str, produce: Callable[[str], tuple[float, float]]) -> None:
    topic = cluster.new_topic("throughput", min_insync_replicas="2")
    before = cluster.cpu_s()
    size, took = produce(topic)
    spent = {one: cpu - before[one] for one, cpu in cluster.cpu_s().items()}
    followers = [spent[one] for one in BROKERS if one != LEADER]
    samples.add(f"acks=all, {name}", cluster.kind, size / took / 1e6)
    samples.add(f"leader, {name}", cluster.kind, spent[LEADER] / size * 1e9)
    samples.add(f"follower, {name}", cluster.kind, sum(followers) / len(followers) / size * 1e9)
    cluster.delete_topic(topic)


def _produce_pipelined(cluster: Cluster, topic: str, seconds: float) -> tuple[float, float]:
    leader = cluster.brokers[LEADER]
    with RawClient(leader.bootstrap) as client:
        wanted = MetadataRequest.MetadataRequestTopic(name=topic)
        topic_id = bytes(client.ask(MetadataRequest(topics=[wanted]), 12).topics[0].topic_id)
    sent = frames.produce(topic_id, frames.batch(16_384))
    found = run_requests(leader.port, [sent], in_flight=5, seconds=seconds, error_at=frames.PRODUCE_ERROR_AT)
    return found.sent, found.wall_s


def rows(samples: Samples) -> list[Comparison]:
    found = []
    for name in (*(f"{name} batches" for _, name in SIZES), PIPELINED):
        found.append(
            samples.row(f"acks=all, {name}", lambda rate: f"{rate:.0f} MB/s", more_is_better=True, at_most=0.7)
        )
        for who in ("leader", "follower"):
            found.append(samples.row(f"{who}, {name}", lambda cost: f"{cost:.2f} CPU s/GB", at_most=0.5))
    return found
