# ruff: noqa: N806 - short names for the classes of messages
"""The cluster: quotas, log directories, elections, reassignments, features, the quorum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.protocol import messages as m
from tests.support.api_cases.common import INT_MAX, Case
from tests.support.api_twins import Make


def quota_cases() -> Iterator[Case]:
    A = m.AlterClientQuotasRequest

    def alter(
        *entries: tuple[list[tuple[str, str | None]], list[tuple[str, float, bool]]], validate_only: bool = True
    ) -> Make:
        return lambda side: A(
            entries=[
                A.EntryData(
                    entity=[A.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    ops=[A.OpData(key=key, value=value, remove=remove) for key, value, remove in ops],
                )
                for entity, ops in entries
            ],
            validate_only=validate_only,
        )

    rate = [("producer_byte_rate", 1e6, False)]
    yield "nothing", alter()
    for what, entity in {
        "user": [("user", "alice")],
        "default user": [("user", None)],
        "client": [("client-id", "app")],
        "both": [("user", "alice"), ("client-id", "app")],
        "empty name": [("user", "")],
        "ip": [("ip", "127.0.0.1")],
        "bad ip": [("ip", "not-an-address.invalid")],
        "ip and user": [("ip", "127.0.0.1"), ("user", "a")],
        "nobody": [],
        "stranger": [("planet", "mars")],
        "twice": [("user", "a"), ("user", "b")],
        "empty type": [("", "a")],
    }.items():
        yield f"rate of {what}", alter((entity, rate))
        yield f"connections of {what}", alter((entity, [("connection_creation_rate", 10.0, False)]))
    for key, value in (
        ("producer_byte_rate", 0.0),
        ("producer_byte_rate", -1.0),
        ("producer_byte_rate", 1.5),
        ("request_percentage", 0.5),
        ("controller_mutation_rate", 1.5),
        ("no_such_key", 1.0),
        ("consumer_byte_rate", 1e300),
        ("", 1.0),
    ):
        yield f"{key}={value}", alter(([("user", "alice")], [(key, value, False)]))
    yield "remove what is not there", alter(([("user", "alice")], [("producer_byte_rate", 0.0, True)]))
    yield "no operation", alter(([("user", "alice")], []))
    yield "an entity twice", alter(([("user", "alice")], rate), ([("user", "alice")], rate))
    yield (
        "set",
        alter(
            ([("user", "alice")], rate),
            ([("user", None)], [("consumer_byte_rate", 5.5, False)]),
            ([("user", "bob"), ("client-id", "app")], rate),
            ([("client-id", None)], [("request_percentage", 1000.0, False)]),
            ([("ip", "10.0.0.1")], [("connection_creation_rate", 10.0, False)]),
            validate_only=False,
        ),
    )

    D = m.DescribeClientQuotasRequest

    def describe(*parts: tuple[str, int, str | None], strict: bool = False) -> Make:
        return lambda side: D(
            components=[D.ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in parts],
            strict=strict,
        )

    EXACT, DEFAULT, ANY = 0, 1, 2
    for strict in (False, True):
        yield f"all, strict {strict}", describe(strict=strict)
        yield f"alice, strict {strict}", describe(("user", EXACT, "alice"), strict=strict)
        yield f"default user, strict {strict}", describe(("user", DEFAULT, None), strict=strict)
        yield f"any user, strict {strict}", describe(("user", ANY, None), strict=strict)
        yield f"any client, strict {strict}", describe(("client-id", ANY, None), strict=strict)
        yield f"both, strict {strict}", describe(("user", ANY, None), ("client-id", ANY, None), strict=strict)
        yield f"ip, strict {strict}", describe(("ip", ANY, None), strict=strict)
        yield f"ip and user, strict {strict}", describe(("ip", ANY, None), ("user", ANY, None), strict=strict)
    yield "stranger", describe(("planet", ANY, None))
    yield "empty type", describe(("", ANY, None))
    yield "twice", describe(("user", ANY, None), ("user", ANY, None))
    yield "match type 3", describe(("user", 3, None))
    yield "match type -1", describe(("user", -1, None))
    yield "exact null", describe(("user", EXACT, None))
    yield "default with a name", describe(("user", DEFAULT, "alice"))
    yield "any with a name", describe(("user", ANY, "alice"))
    yield "removed", alter(([("user", "alice")], [("producer_byte_rate", 0.0, True)]), validate_only=False)
    yield "after removal", describe()


def voter_cases() -> Iterator[Case]:
    """Yield requests that name another cluster. For this cluster: test_raft_voters_like_kafka.py."""
    voter: dict[str, Any] = {"cluster_id": "other", "voter_id": 7, "voter_directory_id": b"d" * 16}
    yield "a voter", lambda _: m.AddRaftVoterRequest(**voter)
    yield "no voter", lambda _: m.RemoveRaftVoterRequest(**voter)


def cluster_cases() -> Iterator[Case]:
    L = m.DescribeLogDirsRequest

    def dirs(topics: list[tuple[str, list[int]]] | None) -> Make:
        return lambda side: L(
            topics=None
            if topics is None
            else [L.DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in topics]
        )

    yield "all", dirs(None)
    yield "none", dirs([])
    yield "some", dirs([("orders", [0, 2]), ("nowhere", [0]), ("timed", [])])
    yield "odd", dirs([("orders", [99, -1, 0, 0]), ("orders", [1]), ("", [0])])

    A = m.AlterReplicaLogDirsRequest

    def move(*orders: tuple[str, list[tuple[str, list[int]]]]) -> Make:
        return lambda side: A(
            dirs=[
                A.AlterReplicaLogDir(
                    path=path,
                    topics=[A.AlterReplicaLogDirTopic(name=name, partitions=numbers) for name, numbers in wanted],
                )
                for path, wanted in orders
            ]
        )

    yield "move nothing", move()
    yield "move to nowhere", move(("/nowhere", [("orders", [0, 1]), ("unknown", [0]), ("orders", [99, -1])]))
    yield "move to no path", move(("", [("orders", [0])]), ("relative", [("orders", [0])]))
    yield "move what has no name", move(("/nowhere", [("", [0]), ("a/b", [0]), ("x" * 249, [0]), ("x" * 300, [0])]))
    yield "move in two ways", move(("/nowhere", [("orders", [0])]), ("/elsewhere", [("orders", [0])]), ("/third", []))

    E = m.ElectLeadersRequest

    def elect(topics: list[tuple[str, list[int]]] | None, kind: int = 0, timeout_ms: int = 5000) -> Make:
        return lambda side: E(
            election_type=kind,
            timeout_ms=timeout_ms,
            topic_partitions=None
            if topics is None
            else [E.TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics],
        )

    for kind in (0, 1):
        yield f"all, kind {kind}", elect(None, kind)
        yield f"none, kind {kind}", elect([], kind)
        yield f"some, kind {kind}", elect([("orders", [0, 1]), ("nowhere", [0]), ("timed", [9, -1])], kind)
        yield f"twice, kind {kind}", elect([("orders", [0, 0])], kind)
    for kind in (2, -1):
        yield f"kind {kind}", elect([("orders", [0])], kind)
    yield "no topic name", elect([("", [0])])
    yield "timeout -1", elect([("orders", [0])], timeout_ms=-1)

    R = m.AlterPartitionReassignmentsRequest

    def reassign(*parts: tuple[str, int, list[int] | None], **more: Any) -> Make:
        topics: dict[str, Any] = {}
        for name, number, replicas in parts:
            topics.setdefault(name, R.ReassignableTopic(name=name)).partitions.append(
                R.ReassignablePartition(partition_index=number, replicas=replicas)
            )
        return lambda side: R(topics=list(topics.values()), **more)

    yield "nothing", reassign()
    yield "as it is", reassign(("orders", 0, [1]))
    for allow in (True, False):
        yield (
            f"to others, {allow}",
            reassign(
                ("orders", 0, [2]), ("orders", 1, []), ("orders", 2, [1, 1]), allow_replication_factor_change=allow
            ),
        )
        yield f"to more, {allow}", reassign(("orders", 0, [1, 2]), allow_replication_factor_change=allow)
    yield "to -1", reassign(("orders", 0, [-1]))
    yield "cancel", reassign(("orders", 0, None))
    yield "unknown", reassign(("nowhere", 0, [1]), ("orders", 99, [1]), ("orders", -1, None))

    Q = m.ListPartitionReassignmentsRequest
    yield "all", lambda side: Q(topics=None)
    yield "none", lambda side: Q(topics=[])
    yield (
        "some",
        lambda side: Q(
            topics=[
                Q.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 99])
                for name in ("orders", "nowhere")
            ]
        ),
    )

    U = m.UpdateFeaturesRequest

    def features(*updates: tuple[str, int, dict[str, Any]], **more: Any) -> Make:
        return lambda side: U(
            feature_updates=[
                U.FeatureUpdateKey(feature=name, max_version_level=level, **how) for name, level, how in updates
            ],
            **more,
        )

    yield "nothing", features()
    yield "nothing to try", features(validate_only=True)
    for name, level, how in (
        ("metadata.version", 30, {}),
        ("metadata.version", 31, {}),
        ("metadata.version", 29, {}),
        ("metadata.version", 29, {"upgrade_type": 2}),
        ("metadata.version", 29, {"upgrade_type": 3}),
        ("metadata.version", 0, {"upgrade_type": 3}),
        ("metadata.version", -1, {}),
        ("group.version", 1, {}),
        ("group.version", 2, {}),
        ("group.version", 0, {"upgrade_type": 2}),
        ("group.version", 1, {"upgrade_type": 2}),
        ("group.version", 1, {"upgrade_type": 0}),
        ("group.version", 1, {"upgrade_type": 9}),
        ("kraft.version", 1, {}),
        ("kraft.version", 0, {"upgrade_type": 2}),
        ("kraft.version", 2, {}),
        ("no.such.feature", 1, {}),
        ("no.such.feature", 0, {"upgrade_type": 2}),
        ("", 1, {}),
    ):
        yield f"{name} {level} {how}", features((name, level, how), validate_only=True)
    yield "good and bad", features(("group.version", 1, {}), ("no.such.feature", 1, {}), validate_only=True)
    yield "twice", features(("group.version", 1, {}), ("group.version", 0, {"upgrade_type": 2}), validate_only=True)
    yield "downgrade", features(("group.version", 0, {"allow_downgrade": True}), ("no.such.feature", 1, {}))

    V = m.DescribeQuorumRequest

    def quorum(*topics: tuple[str, list[int]]) -> Make:
        return lambda side: V(
            topics=[
                V.TopicData(topic_name=name, partitions=[V.PartitionData(partition_index=one) for one in numbers])
                for name, numbers in topics
            ]
        )

    yield "quorum", quorum(("__cluster_metadata", [0]))
    yield "nothing", quorum()
    yield "other topic", quorum(("orders", [0]))
    yield "other partition", quorum(("__cluster_metadata", [1]))
    yield "two partitions", quorum(("__cluster_metadata", [0, 0]))
    yield "two topics", quorum(("__cluster_metadata", [0]), ("orders", [0]))
    yield "no partition", quorum(("__cluster_metadata", []))

    for broker_id in (2, -1, INT_MAX):
        yield f"broker {broker_id}", lambda side, broker_id=broker_id: m.UnregisterBrokerRequest(broker_id=broker_id)

    for name, version in (("twin", "1"), ("", ""), ("a b", "1"), ("-a", "1"), ("a", "1-"), ("x" * 300, "1.0.0-a")):
        yield (
            f"software {name[:5]!r} {version!r}",
            lambda side, name=name, version=version: m.ApiVersionsRequest(
                client_software_name=name, client_software_version=version
            ),
        )
