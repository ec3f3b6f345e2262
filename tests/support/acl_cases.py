"""At least one request of every API, each naming resources on which a client may have rights, and others.

    orders, g1, s1, k1, tx1    resources on which rights are granted
    secret, g2, s2, k2, tx2    other resources that exist

The requests are answered at once and can be repeated, by every principal, at Kafka and at Tailrace (`acl_twins.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tailrace.model.acls import ANY, Acl, AclFilter, AclResource, Operation, PatternType, Permission
from tailrace.protocol.codegen.schema import Field
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.registry import message_class
from tests.support.acl_twins import creation, deletion, description
from tests.support.api_cases.common import Case, batch

TOPICS, GROUPS, TRANSACTIONS = ("orders", "secret"), ("g1", "g2"), ("tx1", "tx2")
SHARES, STREAMS = ("s1", "s2"), ("k1", "k2")
NOW = int(time.time() * 1000)  # recent, so that retention deletes nothing
OTHER = Acl(AclResource.TOPIC, "x", PatternType.LITERAL, "User:other", "*", Operation.READ, Permission.ALLOW)


def make(name: str, **fields: Any) -> Message:
    """Make a request from plain values, with dicts for its structs."""
    kind = message_class(f"{name}Request")
    return kind(**_filled(kind, kind.SCHEMA.fields, fields))  # type: ignore[arg-type]


def _filled(kind: type[Message], known: Any, values: dict[str, Any]) -> dict[str, Any]:
    by_name: dict[str, Field] = {field.attribute: field for field in known}
    return {name: _value(kind, by_name[name], value) for name, value in values.items()}


def _value(kind: type[Message], field: Field, value: Any) -> Any:
    if isinstance(value, list) and field.struct is not None:
        return [_struct(kind, field, one) for one in value]
    return _struct(kind, field, value) if isinstance(value, dict) else value


def _struct(kind: type[Message], field: Field, values: Any) -> Struct:
    assert field.struct is not None
    struct: Callable[..., Struct] = kind.STRUCTS[field.struct]  # type: ignore[attr-defined]
    return struct(**_filled(kind, field.struct.fields, values))


def _same(label: str, name: str, **fields: Any) -> Case:
    return label, lambda _: make(name, **fields)


def every_case() -> Iterator[Case]:
    yield from _records()
    yield from _metadata()
    yield from _groups()
    yield from _transactions()
    yield from _admin()
    yield from _configs()
    yield from _shares()
    yield from _streams()


def _records() -> Iterator[Case]:
    data = [{"index": 0, "records": batch(NOW, b"a")}]
    yield (
        "plain",
        lambda side: make(
            "Produce",
            acks=1,
            timeout_ms=1_000,
            topic_data=[{"name": one, "topic_id": side.topic_id(one), "partition_data": data} for one in TOPICS],
        ),
    )
    missing = [{"name": one, "topic_id": b"\x09" * 16, "partition_data": data} for one in ("missing",)]
    yield _same("no such topic", "Produce", acks=1, timeout_ms=1_000, topic_data=missing)
    yield (
        "acks=0",
        lambda side: make(
            "Produce",
            acks=0,
            topic_data=[{"name": "orders", "topic_id": side.topic_id("orders"), "partition_data": data}],
        ),
    )
    in_transaction = [
        {
            "index": 0,
            "records": batch(NOW, b"t", producer_id=7_000, producer_epoch=0, base_sequence=0, transactional=True),
        }
    ]
    for transaction in (*TRANSACTIONS, None):
        yield (
            f"of {transaction}",
            lambda side, transaction=transaction: make(
                "Produce",
                transactional_id=transaction,
                acks=-1,
                timeout_ms=1_000,
                topic_data=[
                    {"name": one, "topic_id": side.topic_id(one), "partition_data": in_transaction} for one in TOPICS
                ],
            ),
        )
    followers: tuple[dict[str, Any], ...] = ({"replica_id": 9}, {"replica_state": {"replica_id": 9}})
    yield "consumer", _fetch
    for replica in followers:
        yield "follower", lambda side, replica=replica: _fetch(side, **replica)
    yield _same(
        "latest",
        "ListOffsets",
        replica_id=-1,
        topics=[{"name": one, "partitions": [{"partition_index": 0, "timestamp": -1}]} for one in (*TOPICS, "missing")],
    )
    yield _same(
        "epochs",
        "OffsetForLeaderEpoch",
        replica_id=-1,
        topics=[{"topic": one, "partitions": [{"partition": 0, "leader_epoch": 0}]} for one in (*TOPICS, "missing")],
    )
    yield _same(
        "two",
        "DeleteRecords",
        timeout_ms=1_000,
        topics=[{"name": one, "partitions": [{"partition_index": 0, "offset": 0}]} for one in (*TOPICS, "missing")],
    )
    yield _same(
        "two",
        "DescribeProducers",
        topics=[{"name": one, "partition_indexes": [0]} for one in (*TOPICS, "missing")],
    )


def _fetch(side: Any, **fields: Any) -> Message:
    wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 200}]
    return make(
        "Fetch",
        min_bytes=1,
        max_bytes=1_000,
        session_epoch=-1,
        topics=[{"topic": one, "topic_id": side.topic_id(one), "partitions": wanted} for one in (*TOPICS, "missing")],
        **fields,
    )


def _metadata() -> Iterator[Case]:
    reported = {"include_topic_authorized_operations": True, "allow_auto_topic_creation": False}
    names = [{"name": one} for one in (*TOPICS, "missing")]
    yield _same("named", "Metadata", topics=names, **reported)
    yield _same("named, plainly", "Metadata", topics=names, allow_auto_topic_creation=False)
    yield _same("all", "Metadata", topics=None, **reported)
    yield _same("the cluster", "Metadata", topics=[], include_cluster_authorized_operations=True)
    yield (
        "by id",
        lambda side: make(
            "Metadata",
            topics=[{"topic_id": side.topic_id(one), "name": None} for one in (*TOPICS, "missing")],
            **reported,
        ),
    )
    yield _same("named", "DescribeTopicPartitions", topics=names)
    yield _same("all", "DescribeTopicPartitions", topics=[])
    yield _same("with rights", "DescribeCluster", include_cluster_authorized_operations=True)
    yield _same("without", "DescribeCluster")
    yield _same("versions", "ApiVersions", client_software_name="a", client_software_version="1")


def _groups() -> Iterator[Case]:
    for group in GROUPS:
        yield (
            f"of {group}",
            lambda side, group=group: make(
                "OffsetCommit",
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=[
                    {
                        "name": one,
                        "topic_id": side.topic_id(one),
                        "partitions": [{"partition_index": 0, "committed_offset": 1}],
                    }
                    for one in (*TOPICS, "missing")
                ],
            ),
        )
        offsets = [{"name": one, "partition_indexes": [0]} for one in (*TOPICS, "missing")]
        yield _same(f"of {group}", "OffsetFetch", group_id=group, topics=offsets)
        yield _same(f"all of {group}", "OffsetFetch", group_id=group, topics=None)
        protocols = [{"name": "range", "metadata": b""}]
        yield _same(
            group,
            "JoinGroup",
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="nobody",
            protocol_type="consumer",
            protocols=protocols,
        )
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        yield _same(group, "SyncGroup", group_id=group, generation_id=3, member_id="nobody", **protocol)
        yield _same(group, "Heartbeat", group_id=group, generation_id=3, member_id="nobody")
        yield _same(f"{group} by one", "LeaveGroup", group_id=group, member_id="nobody")
        yield _same(f"{group} by some", "LeaveGroup", group_id=group, members=[{"member_id": "nobody"}])
        for topics in (["orders"], list(TOPICS), ["missing"], None):
            yield _same(
                f"{group} {topics}",
                "ConsumerGroupHeartbeat",
                group_id=group,
                member_id="m",
                member_epoch=7,
                subscribed_topic_names=topics,
            )
        for kind in (0, 1, 2):
            yield _same(f"{kind} {group}", "FindCoordinator", key=group, key_type=kind)
        deleted = [{"name": one, "partitions": [{"partition_index": 0}]} for one in (*TOPICS, "missing")]
        yield _same(group, "OffsetDelete", group_id=group, topics=deleted)
    yield (
        "several groups",
        lambda side: make(
            "OffsetFetch",
            groups=[
                {
                    "group_id": group,
                    "topics": [
                        {"name": one, "topic_id": side.topic_id(one), "partition_indexes": [0]}
                        for one in (*TOPICS, "missing")
                    ],
                }
                for group in GROUPS
            ],
        ),
    )
    yield _same("all of several", "OffsetFetch", groups=[{"group_id": one, "topics": None} for one in GROUPS])
    for kind, keys in ((0, GROUPS), (1, TRANSACTIONS)):
        yield _same(f"several of {kind}", "FindCoordinator", key_type=kind, coordinator_keys=list(keys))
    yield (
        "shares",
        lambda side: make(
            "FindCoordinator",
            key_type=2,
            coordinator_keys=[f"g1:{_text(side.topic_id('orders'))}:0"],
        ),
    )
    yield _same("two", "DescribeGroups", groups=list(GROUPS), include_authorized_operations=True)
    yield _same("without rights", "DescribeGroups", groups=list(GROUPS))
    yield _same("two", "ConsumerGroupDescribe", group_ids=list(GROUPS), include_authorized_operations=True)
    yield _same("all", "ListGroups")
    yield _same("two", "DeleteGroups", groups_names=[*GROUPS, "g3"])


def _text(topic_id: bytes) -> str:
    from tailrace.protocol.json_form import base64_uuid_text

    return base64_uuid_text(topic_id)


def _transactions() -> Iterator[Case]:
    yield _same("none", "InitProducerId", transactional_id=None, transaction_timeout_ms=60_000)
    for one in TRANSACTIONS:
        yield _same(
            one,
            "InitProducerId",
            transactional_id=one,
            transaction_timeout_ms=60_000,
            producer_id=8_000,
            producer_epoch=0,
        )
        partitions = [{"name": topic, "partitions": [0]} for topic in (*TOPICS, "missing")]
        known = {"producer_id": 8_000, "producer_epoch": 0}
        yield _same(
            one,
            "AddPartitionsToTxn",
            v3_and_below_transactional_id=one,
            v3_and_below_producer_id=8_000,
            v3_and_below_topics=partitions,
        )
        for group in GROUPS:
            yield _same(f"{one} {group}", "AddOffsetsToTxn", transactional_id=one, group_id=group, **known)
            yield (
                f"{one} {group}",
                lambda side, one=one, group=group: make(
                    "TxnOffsetCommit",
                    transactional_id=one,
                    group_id=group,
                    producer_id=8_000,
                    producer_epoch=0,
                    topics=[
                        {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
                        for topic in (*TOPICS, "missing")
                    ],
                ),
            )
        yield _same(one, "EndTxn", transactional_id=one, committed=True, **known)
    yield _same(
        "of brokers",
        "AddPartitionsToTxn",
        transactions=[
            {
                "transactional_id": one,
                "producer_id": 8_000,
                "verify_only": True,
                "topics": [{"name": topic, "partitions": [0]} for topic in TOPICS],
            }
            for one in TRANSACTIONS
        ],
    )
    yield _same("two", "DescribeTransactions", transactional_ids=list(TRANSACTIONS))
    yield _same("all", "ListTransactions")
    marker = {
        "producer_id": 8_000,
        "producer_epoch": 0,
        "transaction_result": False,
        "topics": [{"name": topic, "partition_indexes": [0]} for topic in (*TOPICS, "missing")],
    }
    yield _same("of brokers", "WriteTxnMarkers", markers=[marker])


def _admin() -> Iterator[Case]:
    wanted = [
        {"name": one, "num_partitions": 1, "replication_factor": 1, "configs": [{"name": "retention.ms", "value": "9"}]}
        for one in ("orders", "new")
    ]
    yield _same("only to see", "CreateTopics", topics=wanted, timeout_ms=5_000, validate_only=True)
    yield _same("by name", "DeleteTopics", topic_names=["missing", "unseen"], timeout_ms=5_000)
    yield (
        "by id",
        lambda side: make(
            "DeleteTopics", topics=[{"name": "missing"}, {"topic_id": b"\x09" * 16, "name": None}], timeout_ms=5_000
        ),
    )
    more = [{"name": one, "count": 9} for one in (*TOPICS, "missing")]
    yield _same("only to see", "CreatePartitions", topics=more, timeout_ms=5_000, validate_only=True)
    for label, topics in (("one", [{"topic": "orders", "partitions": [0]}]), ("all", None)):
        yield _same(label, "ElectLeaders", topic_partitions=topics, timeout_ms=5_000)
    yield _same(
        "as it is",
        "AlterPartitionReassignments",
        timeout_ms=5_000,
        topics=[{"name": "orders", "partitions": [{"partition_index": 0, "replicas": None}]}],
    )
    yield _same("all", "ListPartitionReassignments", timeout_ms=5_000, topics=None)
    yield _same("orders", "DescribeLogDirs", topics=[{"topic": "missing", "partitions": [0]}])
    moves = [{"name": one, "partitions": [0]} for one in (*TOPICS, "missing")]
    yield _same("elsewhere", "AlterReplicaLogDirs", dirs=[{"path": "/nowhere", "topics": moves}])
    component = {"entity_type": "user", "match_type": 2, "match": None}
    yield _same("users", "DescribeClientQuotas", components=[component], strict=False)
    entry = {
        "entity": [{"entity_type": "user", "entity_name": "u"}],
        "ops": [{"key": "producer_byte_rate", "value": 9.0}],
    }
    yield _same("only to see", "AlterClientQuotas", entries=[entry], validate_only=True)
    yield _same("nobody's", "DescribeUserScramCredentials", users=[{"name": "nobody"}])
    yield _same("nobody's", "AlterUserScramCredentials", deletions=[{"name": "nobody", "mechanism": 1}])
    yield _same("the quorum", "DescribeQuorum", topics=[{"topic_name": "__cluster_metadata", "partitions": [{}]}])
    update = {"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}
    yield _same("only to see", "UpdateFeatures", timeout_ms=5_000, feature_updates=[update], validate_only=True)
    yield _same("nobody", "UnregisterBroker", broker_id=99)
    yield _same("of another cluster", "AddRaftVoter", cluster_id="other", voter_id=7, voter_directory_id=b"d" * 16)
    yield _same("of another cluster", "RemoveRaftVoter", cluster_id="other", voter_id=7, voter_directory_id=b"d" * 16)
    yield _same("for another", "CreateDelegationToken", owner_principal_type="User", owner_principal_name="other")
    yield _same("no such token", "RenewDelegationToken", hmac=b"none")
    yield _same("no such token", "ExpireDelegationToken", hmac=b"none")
    yield _same("all", "DescribeDelegationToken", owners=None)
    yield "all", lambda _: description(AclFilter(ANY, None, ANY, None, None, ANY, ANY))
    yield "one", lambda _: make("CreateAcls", creations=[]).__class__(creations=[creation(OTHER)])
    others = AclFilter(ANY, None, ANY, "User:other", None, ANY, ANY)
    yield "one", lambda _: make("DeleteAcls", filters=[]).__class__(filters=[deletion(others)])


def _configs() -> Iterator[Case]:
    named = (
        (2, "orders"),
        (2, "secret"),
        (2, "missing"),
        (4, "1"),
        (4, ""),
        (8, "1"),
        (16, "cm"),
        (32, "g1"),
        (32, "g2"),
    )
    some = {
        2: ["retention.ms"],
        4: ["num.partitions"],
        8: ["none"],
        16: ["interval.ms"],
        32: ["share.session.timeout.ms"],
    }
    yield _same(
        "of all kinds",
        "DescribeConfigs",
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": some[kind]} for kind, name in named
        ],
    )
    values = {2: ("retention.ms", "9000"), 4: ("log.cleaner.backoff.ms", "9"), 16: ("interval.ms", "9000")}
    values |= {8: ("tailrace", "INFO"), 32: ("consumer.session.timeout.ms", "46000")}
    changes: list[dict[str, Any]] = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": values[kind][0], "value": values[kind][1]}],
        }
        for kind, name in named
        if kind in values
    ]
    yield _same("only to see", "IncrementalAlterConfigs", resources=changes, validate_only=True)
    yield _same("only to see", "AlterConfigs", resources=changes, validate_only=True)
    yield _same("all kinds", "ListConfigResources", resource_types=[2, 4, 16, 32])
    yield _same("of old", "ListConfigResources")


def _shares() -> Iterator[Case]:
    for group in SHARES:
        for topics in (["orders"], list(TOPICS), ["missing"], None):
            yield _same(
                f"{group} {topics}",
                "ShareGroupHeartbeat",
                group_id=group,
                member_id="m",
                member_epoch=7,
                subscribed_topic_names=topics,
            )
        yield (
            group,
            lambda side, group=group: make(
                "ShareFetch",
                group_id=group,
                member_id="AAAAAAAAAAAAAAAAAAAAAA",
                share_session_epoch=-1,
                max_bytes=1_000,
                max_records=10,
                batch_size=10,
                topics=[
                    {"topic_id": side.topic_id(one), "partitions": [{"partition_index": 0}]}
                    for one in (*TOPICS, "missing")
                ],
            ),
        )
        yield (
            group,
            lambda side, group=group: make(
                "ShareAcknowledge",
                group_id=group,
                member_id="AAAAAAAAAAAAAAAAAAAAAA",
                share_session_epoch=3,
                topics=[
                    {
                        "topic_id": side.topic_id(one),
                        "partitions": [
                            {
                                "partition_index": 0,
                                "acknowledgement_batches": [
                                    {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
                                ],
                            }
                        ],
                    }
                    for one in TOPICS
                ],
            ),
        )
        offsets = [{"topic_name": one, "partitions": [{"partition_index": 0, "start_offset": 0}]} for one in TOPICS]
        yield _same(group, "AlterShareGroupOffsets", group_id=group, topics=offsets)
        yield _same(group, "DeleteShareGroupOffsets", group_id=group, topics=[{"topic_name": one} for one in TOPICS])
    yield _same("two", "ShareGroupDescribe", group_ids=list(SHARES), include_authorized_operations=True)
    asked = [{"topic_name": one, "partitions": [0]} for one in (*TOPICS, "missing")]
    yield _same("named", "DescribeShareGroupOffsets", groups=[{"group_id": one, "topics": asked} for one in SHARES])
    yield _same("all", "DescribeShareGroupOffsets", groups=[{"group_id": one, "topics": None} for one in SHARES])
    more: dict[str, dict[str, Any]] = {
        "InitializeShareGroupState": {"state_epoch": 1, "start_offset": 0},
        "ReadShareGroupState": {"leader_epoch": 0},
        "WriteShareGroupState": {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0},
        "ReadShareGroupStateSummary": {"leader_epoch": 0},
        "DeleteShareGroupState": {},
    }
    for name, fields in more.items():
        yield (
            "orders",
            lambda side, name=name, fields=fields: make(
                name,
                group_id="g1",
                topics=[{"topic_id": side.topic_id("orders"), "partitions": [{"partition": 0, **fields}]}],
            ),
        )


def _streams() -> Iterator[Case]:
    for group in STREAMS:
        for sources in (["orders"], list(TOPICS), ["missing"]):
            subtopology = {
                "subtopology_id": "0",
                "source_topics": sources,
                "repartition_source_topics": [{"name": "made", "partitions": 1}],
                "state_changelog_topics": [{"name": "kept"}],
            }
            yield _same(
                f"{group} {sources}",
                "StreamsGroupHeartbeat",
                group_id=group,
                member_id="m",
                member_epoch=7,
                rebalance_timeout_ms=-1,
                topology={"epoch": 0, "subtopologies": [subtopology]},
            )
    yield _same("two", "StreamsGroupDescribe", group_ids=list(STREAMS), include_authorized_operations=True)
