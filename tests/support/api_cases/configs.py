# ruff: noqa: N806 - short names for the classes of messages
"""Configs: described and changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.protocol import messages as m
from tests.support.api_cases.common import Case
from tests.support.api_twins import Make


def config_cases() -> Iterator[Case]:
    D = m.DescribeConfigsRequest
    R = D.DescribeConfigsResource

    def describe(*resources: tuple[int, str, list[str] | None], **more: Any) -> Make:
        return lambda side: D(
            resources=[
                R(resource_type=kind, resource_name=name, configuration_keys=keys) for kind, name, keys in resources
            ],
            **more,
        )

    yield "nothing", describe()
    for synonyms in (False, True):
        yield (
            f"topics, synonyms {synonyms}",
            describe((2, "orders", None), (2, "compacted", None), (2, "timed", []), include_synonyms=synonyms),
        )
        yield (
            f"some keys, synonyms {synonyms}",
            describe(
                (2, "orders", ["retention.ms", "nothing"]),
                (4, "1", ["log.retention.ms", "num.partitions", "compression.type", "min.insync.replicas"]),
                (4, "", None),
                include_synonyms=synonyms,
            ),
        )
        yield f"broker, synonyms {synonyms}", describe((4, "1", None), include_synonyms=synonyms)
        yield f"group, synonyms {synonyms}", describe((32, "grp", None), include_synonyms=synonyms)
        yield f"metrics, synonyms {synonyms}", describe((16, "sub", None), include_synonyms=synonyms)
    yield "unknown topics", describe((2, "nowhere", None), (2, "", None), (2, "a b", None))
    yield "brokers", describe((4, "2", None), (4, "x", None), (4, "-1", None))
    yield "no names", describe((32, "", None), (16, "", None), (8, "", None))
    yield "loggers of others", describe((8, "2", None), (8, "x", None))
    yield "twice", describe((2, "orders", ["retention.ms"]), (2, "orders", ["retention.ms"]))
    for kind in (0, 1, 3, 64, -1):
        yield f"type {kind}", describe((kind, "x", None), (2, "orders", ["retention.ms"]))

    A = m.AlterConfigsRequest
    I = m.IncrementalAlterConfigsRequest  # noqa: E741

    def alter(*resources: tuple[int, str, list[tuple[str, str | None]]], validate_only: bool = True) -> Make:
        return lambda side: A(
            resources=[
                A.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[A.AlterableConfig(name=key, value=value) for key, value in configs],
                )
                for kind, name, configs in resources
            ],
            validate_only=validate_only,
        )

    def change(*resources: tuple[int, str, list[tuple[str, int, str | None]]], validate_only: bool = True) -> Make:
        return lambda side: I(
            resources=[
                I.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        I.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in configs
                    ],
                )
                for kind, name, configs in resources
            ],
            validate_only=validate_only,
        )

    SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
    yield "nothing", alter()
    yield "nothing", change()
    settings: list[tuple[int, str, str, str | None]] = [
        (2, "orders", "retention.ms", "1000"),
        (2, "orders", "retention.ms", "soon"),
        (2, "orders", "retention.ms", ""),
        (2, "orders", "retention.ms", None),
        (2, "orders", "retention.ms", "-2"),
        (2, "orders", "cleanup.policy", "compact"),
        (2, "orders", "cleanup.policy", "compact,compact"),
        (2, "orders", "no.such.key", "1"),
        (2, "orders", "", "1"),
        (2, "orders", "segment.bytes", "5"),
        (2, "orders", "min.insync.replicas", "3"),
        (2, "orders", "min.insync.replicas", "0"),
        (2, "orders", "compression.type", "snappy"),
        (2, "orders", "max.message.bytes", "2147483648"),
        (2, "orders", "remote.storage.enable", "maybe"),
        (2, "orders", "follower.replication.throttled.replicas", "0:1"),
        (2, "nowhere", "retention.ms", "1000"),
        (2, "", "retention.ms", "1000"),
        (2, "a b", "retention.ms", "1000"),
        (4, "1", "log.retention.ms", "100000"),
        (4, "1", "log.retention.ms", "x"),
        (4, "", "log.retention.ms", "100000"),
        (4, "", "message.max.bytes", "-1"),
        (4, "1", "num.partitions", "5"),
        (4, "1", "node.id", "5"),
        (4, "1", "no.such.key", "5"),
        (4, "", "no.such.key", "5"),
        (4, "1", "", "5"),
        (4, "1", "retention.ms", "5"),
        (4, "1", "listener.name.external.no.such.key", "5"),
        (4, "", "listener.name.external.no.such.key", "5"),
        (4, "1", "sasl.kerberos.min.time.before.relogin", "70000"),
        (4, "1", "sasl.kerberos.min.time.before.relogin", "x"),
        (4, "", "sasl.kerberos.min.time.before.relogin", "70000"),
        *((4, "", f"group.{kind}.assignment.interval.ms", "15001") for kind in ("consumer", "share", "streams")),
        *((4, "1", f"group.{kind}.assignment.interval.ms", "15000") for kind in ("consumer", "share", "streams")),
        (4, "1", "listeners", "PLAINTEXT://:1"),
        (4, "", "listeners", "PLAINTEXT://:1"),
        (4, "1", "min.insync.replicas", "1"),
        (4, "", "min.insync.replicas", "1"),
        (4, "", "unclean.leader.election.enable", "false"),
        (4, "2", "log.retention.ms", "100000"),
        (4, "x", "log.retention.ms", "100000"),
        (4, "-1", "log.retention.ms", "100000"),
        (16, "sub", "interval.ms", "1000"),
        (16, "sub", "interval.ms", "1"),
        (16, "sub", "metrics", "a,b"),
        (16, "sub", "match", "client_id=x"),
        (16, "sub", "match", "planet=x"),
        (16, "", "interval.ms", "1000"),
        (16, "sub", "no.such.key", "1000"),
        (32, "grp", "consumer.session.timeout.ms", "50000"),
        (32, "grp", "consumer.session.timeout.ms", "1"),
        (32, "grp", "no.such.key", "1"),
        *(
            (32, "grp", "streams.session.timeout.ms", value)
            for value in ("44999", "45000", "60000", "60001", "x", "-1")
        ),
        *((32, "grp", "streams.num.standby.replicas", value) for value in ("0", "1", "2", "3", "-1", "")),
        *((32, "grp", "streams.heartbeat.interval.ms", value) for value in ("4999", "5000", "15000", "15001")),
        *((32, "grp", "streams.assignment.interval.ms", value) for value in ("-1", "0", "15000", "15001")),
        (32, "", "consumer.session.timeout.ms", "50000"),
        (8, "1", "kafka.nothing", "INFO"),
        (8, "2", "root", "INFO"),
        (0, "x", "a", "b"),
        (1, "x", "a", "b"),
        (99, "x", "a", "b"),
    ]
    for kind, name, key, value in settings:
        yield f"{kind} {name} {key}={value}", alter((kind, name, [(key, value)]))
        yield f"{kind} {name} {key}={value}", change((kind, name, [(key, SET, value)]))
    for op in (APPEND, SUBTRACT, 4, -1):
        yield f"operation {op} of a list", change((2, "orders", [("cleanup.policy", op, "compact")]))
        yield f"operation {op} of a number", change((2, "orders", [("retention.ms", op, "1")]))
        yield f"operation {op} of null", change((2, "orders", [("cleanup.policy", op, None)]))
    yield "subtract all", change((2, "orders", [("cleanup.policy", SUBTRACT, "delete")]))
    yield "delete what is not set", change((2, "orders", [("retention.ms", DELETE, None)]))
    yield "delete with value", change((2, "orders", [("retention.ms", DELETE, "5")]))
    yield "delete what is not known", change((2, "orders", [("no.such.key", DELETE, None)]))
    yield "a key twice", change((2, "orders", [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)]))
    yield "a key twice", alter((2, "orders", [("retention.ms", "5"), ("retention.ms", "6")]))
    yield "a resource twice", change((2, "orders", [("retention.ms", SET, "5")]), (2, "orders", []))
    yield "a resource twice", alter((2, "orders", [("retention.ms", "5")]), (2, "orders", []))
    yield "good and bad", change((2, "orders", [("retention.ms", SET, "5")]), (2, "timed", [("x.y", SET, "5")]))
    yield "no change", change((2, "orders", []))
    for level in ("TRACE", "FATAL", "OFF", "warn", "", None):
        yield f"logger at {level}", change((8, "1", [("root", SET, level)]))
    for op in (DELETE, APPEND, SUBTRACT):
        yield f"logger, operation {op}", change((8, "1", [("root", op, "INFO")]))
    yield "a logger twice", change((8, "1", [("root", SET, "INFO"), ("root", SET, "WARN")]))
    yield "an unknown logger twice", change((8, "1", [("nothing", SET, "INFO"), ("nothing", SET, "INFO")]))
    yield "an unknown logger before null", change((8, "1", [("nothing", SET, "INFO"), ("root", SET, None)]))
    yield "an unknown logger before an append", change((8, "1", [("nothing", SET, "INFO"), ("root", APPEND, "INFO")]))
    yield "logger of a name", change((8, "x", [("root", SET, "INFO")]), (8, "", [("root", SET, "INFO")]))
    yield "logger set", change((8, "1", [("root", SET, "ERROR")]), validate_only=False)
    yield "logger after changes", describe((8, "1", ["root", "nothing"]), include_synonyms=True)
    yield "logger put back", change((8, "1", [("root", SET, "WARN")]), validate_only=False)

    yield (
        "set",
        change(
            (2, "orders", [("retention.ms", SET, " 99000 "), ("max.message.bytes", SET, "100000")]), validate_only=False
        ),
    )
    yield "set of all brokers", change((4, "", [("log.segment.bytes", SET, "2000000")]), validate_only=False)
    yield "set of a broker", change((4, "1", [("log.retention.ms", SET, "700000000")]), validate_only=False)
    yield (
        "set of others",
        change(
            (16, "sub", [("interval.ms", SET, "1000")]),
            (32, "grp", [("consumer.session.timeout.ms", SET, "50000"), ("streams.num.standby.replicas", SET, "2")]),
            validate_only=False,
        ),
    )
    yield (
        "set of what a broker does not know",
        change(
            (4, "", [("no.such.key", SET, "secret"), ("another", SET, "1")]),
            (4, "1", [("no.such.key", SET, "5"), ("sasl.kerberos.min.time.before.relogin", SET, "70000")]),
            validate_only=False,
        ),
    )
    yield (
        "after changes",
        describe(
            (2, "orders", None),
            (2, "compacted", None),
            (4, "", None),
            (16, "sub", None),
            (32, "grp", None),
            include_synonyms=True,
        ),
    )
    yield (
        "broker after changes",
        describe(
            (
                4,
                "1",
                [
                    "log.retention.ms",
                    "log.segment.bytes",
                    "log.retention.hours",
                    "no.such.key",
                    "another",
                    "sasl.kerberos.min.time.before.relogin",
                ],
            ),
            include_synonyms=True,
        ),
    )

    def resources(*kinds: int) -> Make:
        return lambda side: m.ListConfigResourcesRequest(resource_types=list(kinds))

    yield "all", resources()
    for kind in (2, 4, 8, 16, 32):
        yield f"type {kind}", resources(kind)
    yield "several", resources(2, 4, 2)
    for kind in (0, 1, 64, -1):
        yield f"odd type {kind}", resources(kind)
    yield "put back", alter((2, "orders", []), (32, "grp", []), (16, "sub", []), validate_only=False)
    yield (
        "put back of brokers",
        change(
            (4, "", [("log.segment.bytes", DELETE, None)]),
            (4, "1", [("log.retention.ms", DELETE, None)]),
            validate_only=False,
        ),
    )
    yield "after putting back", describe((2, "orders", None), (4, "", None), (16, "sub", None), include_synonyms=True)
