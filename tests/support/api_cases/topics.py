# ruff: noqa: N806 - short names for the classes of messages
"""Topics: created, grown, deleted, described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.protocol import messages as m
from tests.support.api_cases.common import BAD_NAMES, INT_MAX, Case
from tests.support.api_twins import Make


def topic_cases() -> Iterator[Case]:
    T = m.CreateTopicsRequest.CreatableTopic
    C = m.CreateTopicsRequest.CreatableTopicConfig
    A = m.CreateTopicsRequest.CreatableReplicaAssignment

    def create(*topics: Any, **more: Any) -> Make:
        return lambda side: m.CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, **more)

    def new(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> Any:
        return T(name=name, num_partitions=partitions, replication_factor=factor, **more)

    yield "nothing", create()
    yield "to try", create(new("tried", 2), validate_only=True)
    yield "there already", create(new("orders", 3))
    yield "twice in one request", create(new("twice"), new("twice"))
    for name in BAD_NAMES:
        yield f"name {name[:10]!r}", create(new(name), validate_only=True)
    yield "colliding name", create(new("with.dot"), validate_only=True)
    yield "metadata topic", create(new("__cluster_metadata"), validate_only=True)
    for partitions in (0, -1, -2, -(2**31), 10_001):
        yield f"{partitions} partitions", create(new("odd", partitions), validate_only=True)
    for factor in (0, -1, -2, 2, 32767):
        yield f"factor {factor}", create(new("odd", 1, factor), validate_only=True)
    for name, value in (
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "bogus"),
        ("cleanup.policy", ""),
        ("cleanup.policy", None),
        ("retention.ms", "x"),
        ("retention.ms", "-2"),
        ("retention.ms", "99999999999999999999"),
        ("segment.bytes", "1"),
        ("segment.bytes", "1048576"),
        ("max.message.bytes", "-1"),
        ("compression.type", "zip"),
        ("compression.type", "zstd"),
        ("compression.gzip.level", "10"),
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "2"),
        ("message.timestamp.type", "Sometime"),
        ("unclean.leader.election.enable", "yes"),
        ("no.such.key", "1"),
        ("", "1"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:1"),
        ("leader.replication.throttled.replicas", "zero"),
        ("min.compaction.lag.ms", "5"),
        ("max.compaction.lag.ms", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "1"),
        ("remote.storage.enable", "false"),
        ("local.retention.ms", "5"),
        ("message.format.version", "3.0"),
        ("file.delete.delay.ms", "-1"),
        ("preallocate", "TRUE"),
    ):
        configs = [C(name=name, value=value)]
        yield f"config {name}={value}", create(new("configured", configs=configs), validate_only=True)
    twice = [C(name="retention.ms", value="1"), C(name="retention.ms", value="2")]
    yield "a config twice", create(new("configured", configs=twice), validate_only=True)
    yield (
        "lag conflict",
        create(
            new(
                "configured",
                configs=[C(name="min.compaction.lag.ms", value="9"), C(name="max.compaction.lag.ms", value="5")],
            ),
            validate_only=True,
        ),
    )
    for what, assignments in {
        "assigned": [A(partition_index=0, broker_ids=[1]), A(partition_index=1, broker_ids=[1])],
        "assigned with a gap": [A(partition_index=0, broker_ids=[1]), A(partition_index=2, broker_ids=[1])],
        "assigned twice": [A(partition_index=0, broker_ids=[1]), A(partition_index=0, broker_ids=[1])],
        "assigned to nobody": [A(partition_index=0, broker_ids=[])],
        "assigned to a stranger": [A(partition_index=0, broker_ids=[7])],
        "assigned to one twice": [A(partition_index=0, broker_ids=[1, 1])],
        "assigned to -1": [A(partition_index=0, broker_ids=[-1])],
        "assigned from 1": [A(partition_index=1, broker_ids=[1])],
        "assigned unevenly": [A(partition_index=0, broker_ids=[1]), A(partition_index=1, broker_ids=[1, 2])],
    }.items():
        yield what, create(new("placed", -1, -1, assignments=assignments), validate_only=True)
        yield f"{what} and counted", create(new("placed", 1, 1, assignments=assignments), validate_only=True)
    yield "good and bad", create(new("good"), new("bad", 0), new("a b"))
    yield (
        "configured",
        create(
            new(
                "really.configured",
                2,
                configs=[C(name="retention.ms", value="5000"), C(name="cleanup.policy", value="compact")],
            )
        ),
    )

    P = m.CreatePartitionsRequest.CreatePartitionsTopic
    PA = m.CreatePartitionsRequest.CreatePartitionsAssignment

    def grow(*topics: Any, validate_only: bool = True) -> Make:
        return lambda side: m.CreatePartitionsRequest(
            topics=list(topics), timeout_ms=10_000, validate_only=validate_only
        )

    yield "nothing", grow()
    for total in (4, 3, 2, 0, -1, INT_MAX):
        if total != INT_MAX:
            yield f"to {total}", grow(P(name="orders", count=total, assignments=None))
    yield "unknown topic", grow(P(name="nowhere", count=2, assignments=None))
    yield "bad name", grow(P(name="a b", count=2, assignments=None))
    yield "twice", grow(P(name="orders", count=4, assignments=None), P(name="orders", count=5, assignments=None))
    yield "placed", grow(P(name="orders", count=4, assignments=[PA(broker_ids=[1])]))
    yield "placed too many", grow(P(name="orders", count=4, assignments=[PA(broker_ids=[1]), PA(broker_ids=[1])]))
    yield "placed at a stranger", grow(P(name="orders", count=4, assignments=[PA(broker_ids=[9])]))
    yield "placed at nobody", grow(P(name="orders", count=4, assignments=[PA(broker_ids=[])]))
    yield "placed nowhere", grow(P(name="orders", count=4, assignments=[]))
    yield "placed at two", grow(P(name="orders", count=4, assignments=[PA(broker_ids=[1, 1])]))


def delete_topic_cases() -> Iterator[Case]:
    S = m.DeleteTopicsRequest.DeleteTopicState

    def by_name(*names: str) -> Make:
        return lambda side: m.DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)

    def by_state(*states: tuple[str | None, str | None]) -> Make:
        return lambda side: m.DeleteTopicsRequest(
            topics=[S(name=name, topic_id=side.topic_id(known) if known else bytes(16)) for name, known in states],
            timeout_ms=10_000,
        )

    yield "nothing", by_name()
    yield "unknown", by_name("nowhere")
    yield "odd names", by_name(*BAD_NAMES)
    yield "twice", by_name("nowhere", "nowhere")
    yield "there and not", by_name("good", "nowhere")
    yield "nothing", by_state()
    yield "unknown by name", by_state(("nowhere", None))
    yield "unknown by id", by_state((None, "nowhere"))
    yield "neither name nor id", by_state((None, None))
    yield "both name and id", by_state(("orders", "orders"))
    yield "by name and by id", by_state(("really.configured", None), (None, "really.configured"))
    yield "twice by id", by_state((None, "really.configured"), (None, "really.configured"))
    yield "twice by name", by_state(("really.configured", None), ("really.configured", None))
    yield "by id", by_state((None, "really.configured"))
    yield "by id again", by_state((None, "really.configured"))


def metadata_cases() -> Iterator[Case]:
    T = m.MetadataRequest.MetadataRequestTopic

    def ask(topics: list[Any] | None, **more: Any) -> Make:
        return lambda side: m.MetadataRequest(topics=topics, **more)

    for creation in (True, False):
        for operations in (False, True):
            more = {"allow_auto_topic_creation": creation, "include_topic_authorized_operations": operations}
            yield f"all {more}", ask(None, **more)
            yield f"none {more}", ask([], **more)
            yield f"some {more}", ask([T(name="orders"), T(name="nowhere"), T(name="timed")], **more)
    yield "cluster operations", ask([], include_cluster_authorized_operations=True)
    yield "twice", ask([T(name="orders"), T(name="orders")])
    yield "unknown twice", ask([T(name="nowhere"), T(name="nowhere")])
    for name in BAD_NAMES:
        yield f"name {name[:10]!r}", ask([T(name=name)])
    yield "by id", lambda side: m.MetadataRequest(topics=[T(name=None, topic_id=side.topic_id("orders"))])
    yield "by name and id", lambda side: m.MetadataRequest(topics=[T(name="orders", topic_id=side.topic_id("orders"))])
    yield (
        "by name and wrong id",
        lambda side: m.MetadataRequest(topics=[T(name="orders", topic_id=side.topic_id("timed"))]),
    )
    yield "by unknown id", lambda side: m.MetadataRequest(topics=[T(name=None, topic_id=side.topic_id("nowhere"))])
    yield "by zero id", lambda side: m.MetadataRequest(topics=[T(name=None, topic_id=bytes(16))])
    yield (
        "by id and by name",
        lambda side: m.MetadataRequest(topics=[T(name=None, topic_id=side.topic_id("orders")), T(name="timed")]),
    )
    yield "null name", lambda side: m.MetadataRequest(topics=[T(name=None)])

    D = m.DescribeTopicPartitionsRequest

    def describe(names: list[str], limit: int = 2000, cursor: Any = None) -> Make:
        return lambda side: D(
            topics=[D.TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )

    def at(topic: str, partition: int) -> Any:
        return D.Cursor(topic_name=topic, partition_index=partition)

    yield "all", describe([])
    yield "some", describe(["timed", "orders", "nowhere"])
    yield "odd names", describe(list(BAD_NAMES[1:]))
    yield "twice", describe(["orders", "orders"])
    for limit in (-1, 0, 1, 2, 3, 4, INT_MAX):
        yield f"limit {limit}", describe([], limit)
        yield f"limit {limit} of some", describe(["orders", "timed"], limit)
    for topic, partition in (("orders", 1), ("orders", 3), ("orders", 99), ("nowhere", 0), ("zzz", 0), ("", 0)):
        yield f"from {topic}-{partition}", describe([], 2, at(topic, partition))
        yield f"from {topic}-{partition} of some", describe(["orders", "timed"], 2, at(topic, partition))
    yield "from -1", describe([], 2, at("orders", -1))

    for endpoint in (1, 2, 0, 3, -1):
        yield (
            f"endpoint type {endpoint}",
            lambda side, endpoint=endpoint: m.DescribeClusterRequest(endpoint_type=endpoint),
        )
    yield "operations", lambda side: m.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield "fenced too", lambda side: m.DescribeClusterRequest(include_fenced_brokers=True)
