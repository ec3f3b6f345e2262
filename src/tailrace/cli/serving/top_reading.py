"""Readings: the counters of a broker or cluster at one moment. `tailrace top` shows the difference of two readings.

A reading comes from the /metrics of a Tailrace broker, or from the end offsets and sizes of any Kafka cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tailrace.client.admin import describe_cluster, log_directories
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import latest_offsets
from tailrace.metrics.scrape import Scrape

TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
REQUESTS: Final = "kafka_network_requestmetrics_"
TIMES: Final = "tailrace_request_seconds"


@dataclass(slots=True)
class TopicReading:
    partitions: int = 0
    size: int = 0
    messages: float = 0  # a counter
    bytes_in: float | None = None
    bytes_out: float | None = None


@dataclass(slots=True)
class ApiReading:
    requests: float = 0
    errors: float = 0
    local_s: float = 0
    remote_s: float = 0
    buckets: dict[float, float] = field(default_factory=dict)  # total time: seconds → number of requests up to that


class ThrottledClient(NamedTuple):
    """A client that a quota has slowed down."""

    user: str
    client_id: str
    quota: str  # produce, fetch or request
    rate: float  # bytes per second, or percent of a thread
    pause_ms: float


@dataclass(slots=True)
class Reading:
    time_s: float
    source: str
    facts: dict[str, Any] = field(default_factory=dict)  # shown as they are, in this order
    counters: dict[str, float] = field(default_factory=dict)  # shown per second
    apis: dict[str, ApiReading] = field(default_factory=dict)
    topics: dict[str, TopicReading] = field(default_factory=dict)
    throttled: list[ThrottledClient] = field(default_factory=list)
    cpu_s: float | None = None


def read_metrics(scrape: Scrape, source: str, now_s: float) -> Reading:
    """Make a reading from a broker's /metrics."""
    build = next(iter(scrape.samples("tailrace_build_info")), None)
    started_s = min((one.value for one in scrape.samples("process_start_time_seconds")), default=now_s)
    topics = max((one.value for one in scrape.samples("kafka_controller_kafkacontroller_globaltopiccount")), default=0)
    shards = int(scrape.value("tailrace_shards"))
    if shards:
        scrape = scrape.without("shard")
    replicas = "kafka_server_replicamanager_"
    reading = Reading(time_s=now_s, source=source, cpu_s=scrape.value("process_cpu_seconds_total"))
    reading.facts = {
        "version": None if build is None else build.labels.get("version"),
        "uptime_s": max(now_s - started_s, 0.0),
        "memory_bytes": int(scrape.value("process_resident_memory_bytes")),
        "open_files": int(scrape.value("process_open_fds")),
        "connections": int(scrape.sum("kafka_server_socket_server_metrics_connection_count")),
        "waiting": int(scrape.sum("kafka_server_delayedoperationpurgatory_purgatorysize")),
        "fetch_sessions": int(scrape.value("kafka_server_fetchsessioncache_numincrementalfetchsessions")),
        "topics": int(topics),
        "partitions": int(scrape.value(replicas + "partitioncount")),
        "under_replicated": int(scrape.value(replicas + "underreplicatedpartitions")),
        "offline": int(scrape.value(replicas + "offlinereplicacount")),
    }
    reading.counters = {
        "messages_in": scrape.value(TRAFFIC + "messagesin_total"),
        "bytes_in": scrape.value(TRAFFIC + "bytesin_total"),
        "bytes_out": scrape.value(TRAFFIC + "bytesout_total"),
        "requests": scrape.sum(REQUESTS + "requests_total"),
        "idle_s": scrape.value("tailrace_loop_idle_seconds_total"),
    }
    if shards:
        reading.facts["shards"] = shards
    _read_apis(scrape, reading)
    _read_topics(scrape, reading)
    reading.throttled = _throttled(scrape)
    return reading


def _throttled(scrape: Scrape) -> list[ThrottledClient]:
    found = []
    for quota, used in (("produce", "byte_rate"), ("fetch", "byte_rate"), ("request", "request_time")):
        rates = {
            (one.labels.get("user", ""), one.labels.get("client_id", "")): one.value
            for one in scrape.samples(f"kafka_server_{quota}_{used}")
        }
        for one in scrape.samples(f"kafka_server_{quota}_throttle_time"):
            owner = one.labels.get("user", ""), one.labels.get("client_id", "")
            if one.value > 0:
                found.append(ThrottledClient(*owner, quota, rates.get(owner, 0.0), one.value))
    return sorted(found, key=lambda one: -one.pause_ms)


def _read_apis(scrape: Scrape, reading: Reading) -> None:
    local = scrape.by(TIMES + "_sum", "request", phase="local")
    remote = scrape.by(TIMES + "_sum", "request", phase="remote")
    for name, requests in scrape.by(REQUESTS + "requests_total", "request").items():
        reading.apis[name] = ApiReading(requests, 0, local.get(name, 0.0), remote.get(name, 0.0))
    for sample in scrape.samples(REQUESTS + "errors_total"):
        api = reading.apis.get(sample.labels.get("request", ""))
        if api is not None and sample.labels.get("error") != "NONE":
            api.errors += sample.value
    for sample in scrape.samples(TIMES + "_bucket", phase="total"):
        api = reading.apis.get(sample.labels.get("request", ""))
        if api is not None:
            api.buckets[float(sample.labels["le"])] = sample.value


def _read_topics(scrape: Scrape, reading: Reading) -> None:
    sizes = scrape.by("kafka_log_log_size", "topic")
    bytes_in = scrape.by(TRAFFIC + "bytesin_total", "topic")
    bytes_out = scrape.by(TRAFFIC + "bytesout_total", "topic")
    partitions: dict[str, int] = {}
    for sample in scrape.samples("kafka_log_log_size"):
        partitions[sample.labels["topic"]] = partitions.get(sample.labels["topic"], 0) + 1
    for name, messages in scrape.by(TRAFFIC + "messagesin_total", "topic").items():
        reading.topics[name] = TopicReading(
            partitions.get(name, 0), int(sizes.get(name, 0)), messages, bytes_in.get(name), bytes_out.get(name)
        )


def read_cluster(cluster: ClusterClient, source: str, now_s: float) -> Reading:
    """Make a reading from queries to any cluster. A size is the sum over all replicas; deletions reduce it."""
    facts = describe_cluster(cluster)
    topics = cluster.topics()
    every = [one for topic in topics for one in topic.partitions]
    reading = Reading(time_s=now_s, source=source)
    reading.facts = {
        "cluster_id": facts.cluster_id,
        "brokers": len(facts.brokers),
        "controller": facts.controller_id,
        "topics": len(topics),
        "partitions": len(every),
        "under_replicated": sum(len(one.isr) < len(one.replicas) for one in every),
        "offline": sum(one.leader < 0 for one in every),
    }
    for topic in topics:
        reading.topics[topic.name] = TopicReading(partitions=len(topic.partitions))
    led = [one.partition for one in every if one.leader >= 0]
    for partition, offset in latest_offsets(cluster, led).items():
        reading.topics[partition.topic].messages += offset
    for directory in log_directories(cluster):
        for replica in directory.replicas:
            found = reading.topics.get(replica.partition.topic)
            if found is not None:
                found.size += replica.size
    for one in reading.topics.values():
        one.bytes_in = one.size
    reading.counters = {
        "messages_in": sum(one.messages for one in reading.topics.values()),
        "bytes_in": sum(one.size for one in reading.topics.values()),
    }
    return reading
