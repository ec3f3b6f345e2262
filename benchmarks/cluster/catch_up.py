"""A new replica of a partition with 5 GB: the time until it has all records and is in sync."""

from __future__ import annotations

import time

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison
from benchmarks.broker.load import run_requests
from benchmarks.cluster.clusters import LEADER, Cluster, eventually
from benchmarks.cluster.machine import disk_bytes_per_s
from benchmarks.cluster.samples import Samples
from tailrace.protocol.messages import AlterPartitionReassignmentsRequest, MetadataRequest
from tests.support.raw_client import RawClient

TITLE = "Cluster: catching up"
TEXT = (
    "A partition of 5 GB, in batches of 16 KB, gets a second replica on a broker that has none of its records. The "
    "time is from the request until the replica is in sync; CPU is that of the leader and of the follower. For "
    "comparison, the time to write the same number of bytes to the same disk past the page cache."
)
BYTES = 5_000_000_000
FOLLOWER = 3


def measure(cluster: Cluster, samples: Samples, *, quick: bool) -> None:
    size = BYTES // (10 if quick else 1)
    topic = cluster.new_topic("catch-up", ((LEADER,),))
    leader = cluster.brokers[LEADER]
    with RawClient(leader.bootstrap) as client:
        wanted = MetadataRequest.MetadataRequestTopic(name=topic)
        topic_id = bytes(client.ask(MetadataRequest(topics=[wanted]), 12).topics[0].topic_id)
        sent = frames.produce(topic_id, frames.batch(16_384))
        run_requests(leader.port, [sent], in_flight=5, seconds=120, max_bytes=size, error_at=frames.PRODUCE_ERROR_AT)
        before, began = cluster.cpu_s(), time.perf_counter()
        _reassign(client, topic)
        eventually(lambda: _is_in_sync(client, topic), "the new replica is in sync", every_s=0.02)
        took = time.perf_counter() - began
    spent = {one: cpu - before[one] for one, cpu in cluster.cpu_s().items()}
    samples.add("time", cluster.kind, took / size * BYTES)
    samples.add("leader", cluster.kind, spent[LEADER] / size * 1e9)
    samples.add("follower", cluster.kind, spent[FOLLOWER] / size * 1e9)
    cluster.delete_topic(topic)
    samples.add("disk", cluster.kind, BYTES / disk_bytes_per_s(cluster.directory, size))


def _reassign(client: RawClient, topic: str) -> None:
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=[LEADER, FOLLOWER])
    wanted = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[partition])
    answer = client.ask(AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[wanted]), 0)
    if answer.error_code or answer.responses[0].partitions[0].error_code:
        raise RuntimeError(f"no second replica: {answer}")


def _is_in_sync(client: RawClient, topic: str) -> bool:
    wanted = MetadataRequest.MetadataRequestTopic(name=topic)
    (found,) = client.ask(MetadataRequest(topics=[wanted]), 12).topics
    return FOLLOWER in found.partitions[0].isr_nodes


def rows(samples: Samples) -> list[Comparison]:
    return [
        samples.row("time", lambda s: f"{s:.1f} s", at_most=0.7, title="5 GB copied, and in sync"),
        samples.row("disk", lambda s: f"{s:.1f} s", title="plain bytes to the disk, 5 GB"),
        samples.row("leader", lambda cost: f"{cost:.2f} CPU s/GB", at_most=0.7, title="leader"),
        samples.row("follower", lambda cost: f"{cost:.2f} CPU s/GB", at_most=0.7, title="follower"),
    ]
