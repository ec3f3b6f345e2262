"""Odd requests to the controllers of Kafka and Tailrace: the responses are the same field by field, and so is the
image.

The text of error messages may differ; only their presence is compared.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.config_description import describe_config
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.image import ConfigResource, MetadataImage, ResourceType
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.storage_format import read_identity
from tailrace.protocol import messages as m
from tailrace.protocol.json_form import base64_uuid_text
from tailrace.protocol.message import Message
from tests.support.controller_twin import LocalNode, plain, raw_request
from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka

TOPIC, BROKER, LOGGER, METRICS, GROUP = (int(one) for one in list(ResourceType)[1:])
SET, DELETE, APPEND, SUBTRACT = range(4)
LONG = ",".join(f"{number}:1" for number in range(1000, 3000))


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    configs: dict[str, str | None] | None = None,
    assignments: list[tuple[int, list[int]]] | None = None,
) -> Any:
    create = m.CreateTopicsRequest
    return create.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[create.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        assignments=[
            create.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in assignments or []
        ],
    )


def create(*topics: Any, validate_only: bool = False) -> Message:
    return m.CreateTopicsRequest(topics=list(topics), validate_only=validate_only)


BAD_TOPICS = [
    create(topic("")),
    create(topic(".")),
    create(topic("..")),
    create(topic("a b")),
    create(topic("caf\u00e9")),
    create(topic("x" * 249)),
    create(topic("x" * 250)),
    create(topic("colliding.name")),
    create(topic("colliding_name")),
    create(topic("also.colliding"), topic("also_colliding")),
    create(topic("plain"), topic("many", 5), topic("one", 1, 1)),
    create(topic("plain")),
    create(topic("twice"), topic("twice"), topic("once")),
    create(topic("__cluster_metadata")),
    create(topic("__internal_looking")),
    create(topic("no-partitions", 0)),
    create(topic("no-partitions", -2)),
    create(topic("no-replicas", 1, 0)),
    create(topic("no-replicas", 1, -2)),
    create(topic("two-replicas", 1, 2)),
    create(topic("too-many", 10_001, 1)),
    create(topic("too-many", 10_000, 1)),
    create(topic("only-validated", 2, 1, {"retention.ms": "5"}), validate_only=True),
    create(topic("only-validated", 2, 3), topic("plain"), validate_only=True),
    create(topic("by-hand", assignments=[(0, [1]), (1, [1])])),
    create(topic("by-hand-1", 2, assignments=[(0, [1])])),
    create(topic("by-hand-2", -1, 1, assignments=[(0, [1])])),
    create(topic("by-hand-3", assignments=[(0, [1]), (2, [1])])),
    create(topic("by-hand-4", assignments=[(0, [1]), (0, [1])])),
    create(topic("by-hand-5", assignments=[(0, [2])])),
    create(topic("by-hand-6", assignments=[(0, [])])),
    create(topic("by-hand-7", assignments=[(0, [1, 1])])),
    create(topic("by-hand-8", assignments=[(0, [1]), (1, [1, 2])])),
    create(topic("no-value", configs={"retention.ms": None})),
    create(topic("unknown-key", configs={"no.such.key": "1"})),
    create(topic("internal-key", configs={"internal.segment.bytes": "1000"})),
    create(topic("long-value", 1, 1, {"leader.replication.throttled.replicas": "0:1," * 8000 + "0:1"})),
    create(),
]

VALUES: dict[str, list[str]] = {
    "retention.ms": [
        "-1",
        "-2",
        "0",
        " 5 ",
        "+5",
        "1_000",
        "5L",
        "",
        "9223372036854775807",
        "9223372036854775808",
        "1e3",
    ],
    "retention.bytes": ["-5", "-9223372036854775808"],
    "cleanup.policy": [
        "compact",
        "delete,compact",
        "compact , delete",
        "compact,compact",
        "",
        "none",
        "delete,",
        "Delete",
    ],
    "compression.type": ["zstd", "none", " gzip ", "GZIP"],
    "compression.gzip.level": ["-1", "0", "1", "9", "10"],
    "compression.zstd.level": ["-131072", "-131073", "22", "23"],
    "min.cleanable.dirty.ratio": ["0", "1", "1.01", "-0.1", "1e-3", ".5", "0.5f", "half", "1E-4"],
    "preallocate": ["TRUE", "False", "yes", "1"],
    "segment.bytes": ["1048576", "1048575", "2147483647", "2147483648"],
    "message.timestamp.type": ["LogAppendTime", "logappendtime"],
    "leader.replication.throttled.replicas": ["*", "0:1", "0:1,1:1", "0", "*,0:1", "", "0:1,,1:1"],
    "max.message.bytes": ["0", "-1"],
    "flush.messages": ["0", "1"],
    "min.insync.replicas": ["0", "2"],
    "local.retention.ms": ["-3", "-2"],
    "remote.storage.enable": ["true", "false"],
    "max.compaction.lag.ms": ["0", "1"],
}
VALUE_CASES = [
    create(topic(f"value-{key}-{number}", 1, 1, {key: value}))
    for key, values in VALUES.items()
    for number, value in enumerate(values)
] + [
    create(topic("lags", configs={"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})),
    create(topic("lags", configs={"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "10"})),
]


def more(name: str, total: int, assignments: list[list[int]] | None = None) -> Any:
    request = m.CreatePartitionsRequest
    placed = (
        None if assignments is None else [request.CreatePartitionsAssignment(broker_ids=one) for one in assignments]
    )
    return request.CreatePartitionsTopic(name=name, count=total, assignments=placed)


def grow(*topics: Any, validate_only: bool = False) -> Message:
    return m.CreatePartitionsRequest(topics=list(topics), validate_only=validate_only, timeout_ms=60_000)


PARTITIONS = [
    grow(more("plain", 4)),
    grow(more("plain", 4)),
    grow(more("plain", 2)),
    grow(more("plain", 0)),
    grow(more("plain", -1)),
    grow(more("nobody", 4)),
    grow(more("plain", 6, [[1], [1]])),
    grow(more("plain", 7, [[1], [1]])),
    grow(more("plain", 7, [[2]])),
    grow(more("plain", 7, [[1, 2]])),
    grow(more("plain", 7, [[]])),
    grow(more("plain", 7), more("plain", 8), more("one", 2)),
    grow(more("plain", 9), validate_only=True),
    # Far too many partitions are left out: Kafka returns UNKNOWN_SERVER_ERROR and creates ten thousand of them.
    grow(),
]


def alter(*resources: tuple[int, str, list[tuple[str, int, str | None]]], validate_only: bool = False) -> Message:
    request = m.IncrementalAlterConfigsRequest
    return request(
        resources=[
            request.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    request.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )


CONFIGS = [
    alter((TOPIC, "plain", [("retention.ms", SET, "1000"), ("cleanup.policy", SET, "compact")])),
    alter((TOPIC, "plain", [("cleanup.policy", APPEND, "delete")])),
    alter((TOPIC, "plain", [("cleanup.policy", APPEND, "delete,compact")])),
    alter((TOPIC, "plain", [("cleanup.policy", APPEND, "nothing")])),
    alter((TOPIC, "plain", [("cleanup.policy", SUBTRACT, "compact,other")])),
    alter((TOPIC, "plain", [("cleanup.policy", SUBTRACT, "delete")])),
    alter((TOPIC, "one", [("cleanup.policy", APPEND, "compact")])),
    alter((TOPIC, "one", [("leader.replication.throttled.replicas", APPEND, "0:1,1:1")])),
    alter((TOPIC, "one", [("leader.replication.throttled.replicas", SUBTRACT, "0:1")])),
    alter((TOPIC, "one", [("leader.replication.throttled.replicas", APPEND, "")])),
    alter((TOPIC, "plain", [("retention.ms", APPEND, "1")])),
    alter((TOPIC, "plain", [("no.such.key", APPEND, "1")])),
    alter((TOPIC, "plain", [("no.such.key", SET, "1")])),
    alter((TOPIC, "plain", [("no.such.key", DELETE, None)])),
    alter((TOPIC, "plain", [("retention.ms", DELETE, None)])),
    alter((TOPIC, "plain", [("retention.ms", DELETE, "ignored")])),
    alter((TOPIC, "plain", [("retention.ms", SET, None)])),
    alter((TOPIC, "plain", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")])),
    alter((TOPIC, "plain", [("retention.ms", SET, "nonsense")]), (TOPIC, "many", [("retention.ms", SET, "77")])),
    alter((TOPIC, "many", [("retention.ms", SET, "1")]), (TOPIC, "many", [("retention.ms", SET, "2")])),
    alter((TOPIC, "nobody", [("retention.ms", SET, "1")])),
    alter((TOPIC, "", [("retention.ms", SET, "1")])),
    alter((TOPIC, "a b", [("retention.ms", SET, "1")])),
    alter((TOPIC, "plain", [("retention.ms", SET, "5")]), validate_only=True),
    alter((TOPIC, "plain", [("retention.ms", SET, "-7")]), validate_only=True),
    alter((TOPIC, "plain", [("min.insync.replicas", SET, "1")])),
    alter((TOPIC, "plain", [])),
    alter((TOPIC, "long-value", [("leader.replication.throttled.replicas", APPEND, "1:1," * 1000 + "2:1")])),
    alter((TOPIC, "long-value", [("leader.replication.throttled.replicas", APPEND, LONG)])),
    alter((BROKER, "", [("log.retention.ms", SET, "86400000"), ("message.max.bytes", SET, "2000000")])),
    alter((BROKER, "1", [("log.flush.interval.ms", SET, "5000")])),
    alter((BROKER, "1", [("log.flush.interval.ms", DELETE, None)])),
    alter((BROKER, "2", [("log.flush.interval.ms", SET, "5000")])),
    alter((BROKER, "x", [("log.flush.interval.ms", SET, "5000")])),
    alter((BROKER, "-1", [("log.flush.interval.ms", SET, "5000")])),
    alter((BROKER, "", [("log.flush.interval.ms", SET, "often")])),
    alter((BROKER, "", [("num.partitions", SET, "5")])),
    alter((BROKER, "1", [("node.id", SET, "5")])),
    alter((BROKER, "", [("log.cleanup.policy", APPEND, "compact")])),
    alter((BROKER, "", [("log.cleanup.policy", SUBTRACT, "compact")])),
    alter((BROKER, "", [("log.cleanup.policy", DELETE, None)])),
    alter((BROKER, "", [("log.retention.ms", APPEND, "5")])),
    alter((BROKER, "", [("listeners", SET, "PLAINTEXT://:1")])),
    alter((BROKER, "", [("min.insync.replicas", SET, "1")])),
    alter((BROKER, "", [("min.insync.replicas", DELETE, None)])),
    alter((BROKER, "1", [("min.insync.replicas", SET, "1")])),
    alter((BROKER, "1", [("ssl.keystore.location", SET, "/nowhere")])),
    alter((GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")])),
    alter((GROUP, "g", [("consumer.session.timeout.ms", SET, "1")])),
    alter((GROUP, "g", [("consumer.session.timeout.ms", SET, "4000")])),
    alter((GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "15001")])),
    alter((GROUP, "g", [("no.such.key", SET, "1")])),
    alter((GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])),
    alter((GROUP, "h", [("share.auto.offset.reset", SET, "sometime")])),
    alter((GROUP, "h", [("share.isolation.level", SET, "read_committed")])),
    alter((GROUP, "h", [("streams.num.standby.replicas", SET, "3")])),
    alter((METRICS, "m", [("interval.ms", SET, "1000"), ("metrics", SET, "a,b")])),
    alter((METRICS, "m", [("interval.ms", SET, "99")])),
    alter((METRICS, "m", [("match", SET, "client_id=x.*")])),
    alter((METRICS, "m", [("match", SET, "client_color=x.*")])),
    alter((METRICS, "m", [("match", SET, "client_id=[")])),
    alter((METRICS, "m", [("no.such.key", SET, "1")])),
    alter((METRICS, "m", [("metrics", APPEND, "c"), ("interval.ms", DELETE, None)])),
    alter((METRICS, "", [("interval.ms", SET, "1000")])),
    alter((0, "x", [("retention.ms", SET, "1")])),
    alter((3, "x", [("retention.ms", SET, "1")])),
    alter(),
]


def replace(*resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False) -> Message:
    request = m.AlterConfigsRequest
    return request(
        resources=[
            request.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[request.AlterableConfig(name=key, value=value) for key, value in settings.items()],
            )
            for kind, name, settings in resources
        ],
        validate_only=validate_only,
    )


FULL_CONFIGS = [
    replace((TOPIC, "many", {"segment.ms": "60000", "retention.ms": "5"})),
    replace((TOPIC, "many", {"retention.ms": "6"})),
    replace((TOPIC, "many", {"retention.ms": "x"})),
    replace((TOPIC, "many", {"retention.ms": None})),
    replace((TOPIC, "many", {}), validate_only=True),
    replace((TOPIC, "nobody", {"retention.ms": "6"})),
    # The same resource twice is left out: Kafka fails while it writes the response, and never sends one.
    replace((BROKER, "1", {"log.retention.ms": "99999999"})),
    replace((BROKER, "1", {})),
    replace((BROKER, "", {})),
    replace((LOGGER, "1", {"root": "INFO"})),
    replace((99, "x", {})),
]


def quota(
    *entries: tuple[dict[str, str | None], list[tuple[str, float, bool]]], validate_only: bool = False
) -> Message:
    request = m.AlterClientQuotasRequest
    return request(
        entries=[
            request.EntryData(
                entity=[request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                ops=[request.OpData(key=key, value=value, remove=remove) for key, value, remove in ops],
            )
            for entity, ops in entries
        ],
        validate_only=validate_only,
    )


def quotas_of(*components: tuple[str, int, str | None], strict: bool = False) -> Message:
    request = m.DescribeClientQuotasRequest
    return request(
        components=[
            request.ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in components
        ],
        strict=strict,
    )


QUOTAS = [
    quota(({"user": "alice"}, [("producer_byte_rate", 1000.0, False), ("consumer_byte_rate", 2000.0, False)])),
    quota(({"user": "alice", "client-id": "c"}, [("request_percentage", 12.5, False)])),
    quota(
        ({"user": None}, [("producer_byte_rate", 5.0, False)]),
        ({"client-id": None}, [("producer_byte_rate", 6.0, False)]),
    ),
    quota(({"ip": "10.1.2.3"}, [("connection_creation_rate", 5.0, False)])),
    quota(({"ip": None}, [("connection_creation_rate", 60000.0, False)])),
    quota(({"ip": "10.1.2.3"}, [("producer_byte_rate", 5.0, False)])),
    quota(({"ip": "10.1.2.3", "user": "a"}, [("connection_creation_rate", 5.0, False)])),
    quota(({"user": "alice"}, [("no_such_rate", 5.0, False)])),
    quota(({"user": "alice"}, [("producer_byte_rate", 0.0, False)])),
    quota(({"user": "alice"}, [("producer_byte_rate", -1.0, False)])),
    quota(({"user": "alice"}, [("producer_byte_rate", 1.5, False)])),
    quota(({"user": "alice"}, [("producer_byte_rate", 1e20, False)])),
    quota(({"user": "alice"}, [("request_percentage", 1e20, False)])),
    quota(({"user": "alice"}, [("consumer_byte_rate", 0.0, True)])),
    quota(({"user": "alice"}, [("consumer_byte_rate", 0.0, True)])),
    quota(({"user": "bob"}, [("no_such_rate", 0.0, True)])),
    quota(({"user": ""}, [("producer_byte_rate", 1.0, False)])),
    quota(({"planet": "x"}, [("producer_byte_rate", 1.0, False)])),
    quota(({}, [("producer_byte_rate", 1.0, False)])),
    quota(({"user": "carol"}, [("producer_byte_rate", 1.0, False), ("producer_byte_rate", 2.0, False)])),
    quota(({"user": "dave"}, [("producer_byte_rate", 1.0, False)]), validate_only=True),
    quota(),
    quotas_of(),
    quotas_of(strict=True),
    quotas_of(("user", 0, "alice")),
    quotas_of(("user", 0, "alice"), strict=True),
    quotas_of(("user", 1, None)),
    quotas_of(("user", 2, None), ("client-id", 2, None)),
    quotas_of(("ip", 2, None)),
    quotas_of(("ip", 2, None), ("user", 2, None)),
    quotas_of(("user", 0, None)),
    quotas_of(("user", 1, "x")),
    quotas_of(("user", 2, "x")),
    quotas_of(("user", 7, None)),
    quotas_of(("user", 2, None), ("user", 1, None)),
    quotas_of(("planet", 2, None)),
    quotas_of(("", 2, None)),
]


def feature(*updates: tuple[str, int, int], validate_only: bool = False) -> Message:
    request = m.UpdateFeaturesRequest
    return request(
        feature_updates=[
            request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
    )


FEATURES = [
    feature(("metadata.version", 30, 1)),
    feature(("metadata.version", 29, 1)),
    feature(("metadata.version", 29, 2)),
    feature(("metadata.version", 29, 3)),
    feature(("metadata.version", 31, 1)),
    feature(("metadata.version", 99, 1)),
    feature(("metadata.version", -1, 2)),
    feature(("no.such.feature", 1, 1)),
    feature(("no.such.feature", 0, 1)),
    feature(("group.version", 2, 1)),
    feature(("group.version", 0, 1)),
    feature(("group.version", 0, 0)),
    feature(("group.version", 0, 9)),
    feature(("group.version", 0, 2), validate_only=True),
    feature(("transaction.version", 1, 2)),
    feature(("transaction.version", 2, 2)),
    feature(("transaction.version", 2, 1), ("share.version", 0, 1)),
    feature(("transaction.version", 2, 1)),
    feature(("kraft.version", 0, 2)),
    feature(("kraft.version", 1, 1)),
    feature(("kraft.version", 1, 2)),
    feature(("eligible.leader.replicas.version", 1, 1)),
    feature(),
]


def elect(kind: int, *topics: tuple[str, list[int]], everything: bool = False) -> Message:
    request = m.ElectLeadersRequest
    asked = [request.TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics]
    return request(election_type=kind, topic_partitions=None if everything else asked)


def reassign(*partitions: tuple[str, int, list[int] | None]) -> Message:
    request = m.AlterPartitionReassignmentsRequest
    return request(
        topics=[
            request.ReassignableTopic(
                name=name, partitions=[request.ReassignablePartition(partition_index=number, replicas=replicas)]
            )
            for name, number, replicas in partitions
        ]
    )


def reassignments(*topics: tuple[str, list[int]], everything: bool = False) -> Message:
    request = m.ListPartitionReassignmentsRequest
    asked = [request.ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers) for name, numbers in topics]
    return request(topics=None if everything else asked)


REPLICAS = [
    elect(0, ("plain", [0, 1])),
    elect(1, ("plain", [0])),
    elect(0, ("plain", [99]), ("nobody", [0])),
    elect(1, ("plain", [-1])),
    elect(0, everything=True),
    elect(7, ("plain", [0])),
    reassign(("plain", 0, [1])),
    reassign(("plain", 0, None)),
    reassign(("plain", 0, [2]), ("plain", 1, [1])),
    reassign(("plain", 0, [])),
    reassign(("plain", 0, [1, 1])),
    reassign(("plain", 99, [1])),
    reassign(("nobody", 0, [1])),
    reassign(),
    reassignments(everything=True),
    reassignments(("plain", [0, 1, 99]), ("nobody", [0])),
]


def delete(*names: str, ids: tuple[bytes, ...] = (), both: tuple[str, bytes] | None = None) -> Message:
    request = m.DeleteTopicsRequest
    topics = [request.DeleteTopicState(name=name) for name in names]
    topics += [request.DeleteTopicState(topic_id=one) for one in ids]
    if both is not None:
        topics.append(request.DeleteTopicState(name=both[0], topic_id=both[1]))
    return request(topics=topics, timeout_ms=60_000)


DELETIONS = [
    delete("nobody"),
    delete("one", "one"),
    delete("one", "nobody", "many"),
    delete("one"),
    delete(""),
    delete(ids=(b"no such topic id",)),
    delete(ids=(b"no such topic id", b"no such topic id")),
    delete(both=("plain", b"no such topic id")),
    delete(ids=(bytes(16),)),
    delete(),
    create(topic("many", 2)),
]


def quorum(name: str, *partitions: int) -> Message:
    request = m.DescribeQuorumRequest
    numbers = [request.PartitionData(partition_index=number) for number in partitions]
    return request(topics=[request.TopicData(topic_name=name, partitions=numbers)])


QUORUM = [
    quorum("plain", 0),
    quorum("__cluster_metadata", 0, 1),
    quorum("__cluster_metadata"),
    m.DescribeQuorumRequest(),
]

CASES: list[tuple[str, int, list[Message]]] = [
    ("CreateTopics", 7, BAD_TOPICS),
    ("CreateTopics", 7, VALUE_CASES),
    ("CreateTopics", 4, [create(topic("old-way", 1, 1, {"retention.ms": "1"})), create(topic("old-way", 1, 1))]),
    ("CreatePartitions", 3, PARTITIONS),
    ("IncrementalAlterConfigs", 1, CONFIGS),
    ("AlterConfigs", 2, FULL_CONFIGS),
    ("AlterClientQuotas", 1, QUOTAS),
    ("UpdateFeatures", 2, FEATURES),
    ("UpdateFeatures", 1, [feature(("group.version", 2, 1)), feature(("group.version", 1, 1))]),
    ("ElectLeaders", 2, REPLICAS),
    ("DeleteTopics", 6, DELETIONS),
    ("DescribeQuorum", 2, QUORUM),
    ("DescribeQuorum", 0, QUORUM),
]

# The version by request, if it is not the case's own.
VERSIONS = {
    "DescribeClientQuotasRequest": 1,
    "AlterPartitionReassignmentsRequest": 1,
    "ListPartitionReassignmentsRequest": 0,
    "CreateTopicsRequest": 7,
}

# The differences, with their reasons.
DIFFERENCES: list[tuple[str, Message, int]] = [
    (
        "Kafka accepts NaN, which is not a ratio, because comparisons with NaN are false",
        create(topic("not-a-number", 1, 1, {"min.cleanable.dirty.ratio": "NaN"})),
        7,
    ),
    (
        "Kafka accepts contradicting defaults, and refuses all topic settings from then on",
        alter(
            (
                BROKER,
                "",
                [("log.cleaner.min.compaction.lag.ms", SET, "5"), ("log.cleaner.max.compaction.lag.ms", SET, "1")],
            )
        ),
        1,
    ),
    (
        "Kafka resolves names, which the core of our broker cannot",
        quota(({"ip": "localhost"}, [("connection_creation_rate", 50_000.0, False)])),
        1,
    ),
    (
        "we refuse unsupported settings instead of ignoring them",
        alter((BROKER, "1", [("sasl.kerberos.kinit.cmd", SET, "/usr/local/bin/kinit")])),
        1,
    ),
]

SETTINGS = {"num.partitions": "3", "log.retention.hours": "100", "log.segment.bytes": "2000000"}


class Twin:
    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.node = LocalNode(settings=SETTINGS)
        self.names: dict[str, str] = {}
        self.differences: list[str] = []

    def ask(self, request: Message, version: int) -> bool:
        """Send a request to both, and return True if the responses are the same."""
        theirs = raw_request(self.broker.port, request, version)
        ours = self.node.ask(request, version)
        for answer in (theirs, ours):
            if isinstance(answer, m.CreateTopicsResponse):
                self.names |= {
                    base64_uuid_text(one.topic_id): one.name for one in answer.topics if one.topic_id.strip(b"\0")
                }
        expected, actual = plain(theirs, version, self.names), plain(ours, version, self.names)
        for _ in range(100):
            if expected == actual or not isinstance(request, m.DescribeClientQuotasRequest):
                break
            time.sleep(0.1)  # Kafka's broker learns a little later what its controller has decided
            expected = plain(raw_request(self.broker.port, request, version), version, self.names)
        if expected != actual:
            self.differences.append(f"{request}\n   Kafka {expected}\n   ours  {actual}")
        return bool(expected == actual)


def essence(image: MetadataImage) -> dict[str, Any]:
    """Return an image without ids, incarnations and ports."""
    return {
        "features": dict(image.features),
        "topics": {
            topic.name: {
                number: (
                    one.replicas,
                    one.isr,
                    one.leader,
                    one.leader_epoch,
                    one.partition_epoch,
                    one.elr,
                    one.last_known_elr,
                )
                for number, one in topic.partitions.items()
            }
            for topic in image.topics.values()
        },
        "configs": {resource: dict(settings) for resource, settings in image.configs.items()},
        "quotas": {entity: dict(quotas) for entity, quotas in image.client_quotas.items()},
        "brokers": {
            one.id: (one.fenced, one.in_controlled_shutdown, one.rack, len(one.directories), dict(one.features))
            for one in image.brokers.values()
        },
        "producer ids": image.next_producer_id,
    }


def kafkas_image(data: Path, scratch: Path) -> MetadataImage:
    """Return the image of Kafka's metadata log, read from a copy."""
    folder = "__cluster_metadata-0"
    shutil.copytree(data / folder, scratch / folder, ignore=shutil.ignore_patterns("*.tmp"))
    shutil.copy(data / "meta.properties", scratch)
    identity = read_identity(DiskFiles(), str(scratch))
    log = MetadataLog(DiskFiles(), str(scratch), identity, controller_endpoints=(), now_ms=0)
    log.abandon()
    return log.image


def assert_described_alike(broker: KafkaBroker, image: MetadataImage) -> None:
    """Check that DescribeConfigs returns the same values, sources, synonyms and types for every key."""
    config = BrokerConfig(broker.properties)
    describe = m.DescribeConfigsRequest
    for kind, name in ((TOPIC, "plain"), (TOPIC, "lags"), (BROKER, "1"), (BROKER, ""), (GROUP, "g"), (METRICS, "m")):
        asked = describe.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        answer: Any = raw_request(broker.port, describe(resources=[asked], include_synonyms=True), 4)
        theirs = {
            one.name: (
                one.value,
                one.config_source,
                one.read_only,
                one.is_sensitive,
                one.config_type,
                [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
            )
            for one in answer.results[0].configs
        }
        ours = {
            one.name: (
                one.value,
                one.source,
                one.read_only,
                one.is_sensitive,
                one.config_type,
                [tuple(synonym) for synonym in one.synonyms],
            )
            for one in describe_config(config, image, ConfigResource(kind, name))
        }
        assert ours == theirs, (kind, name)


def test_odd_requests_get_the_same_responses_as_at_kafka(
    kafka_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker = kafka_broker(properties=SETTINGS)
    broker.start()
    twin = Twin(broker)
    asked = 0
    for _, version, requests in CASES:
        for request in requests:
            twin.ask(request, VERSIONS.get(request.SCHEMA.name, version) if version != 4 else version)
            asked += 1
    assert not twin.differences, f"{len(twin.differences)} of {asked} differ:\n" + "\n".join(twin.differences)
    theirs = kafkas_image(broker.data, tmp_path / "copy")
    assert essence(twin.node.image) == essence(theirs)
    assert_described_alike(broker, theirs)
    for reason, request, version in DIFFERENCES:
        assert not twin.ask(request, version), f"no longer different: {reason}"
