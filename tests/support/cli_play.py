"""Every client command of the command line, at one secured cluster with ACLs.

The cluster has a SASL_SSL listener, an authorizer and the super user `admin`. `play` runs each command as `admin` and
checks its result; `play_as_stranger` runs each command as a user without rights, and checks that it is refused. Both
fail if a command is not in them. A `Player` has its security settings from --command-config, -X or --profile.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest
from confluent_kafka import Producer

from tests.support.command import Ran, commands_that_connect, tailrace
from tests.support.secured import TLS, jaas, librdkafka

ADMIN = {"admin": "admin-secret", "mallory": "mallory-secret"}
HOSTNAMES_NOT_CHECKED = {"ssl.endpoint.identification.algorithm": ""}


def write_client_config(path: Path, name: str, mechanism: str = "PLAIN") -> Path:
    kind = "Plain" if mechanism == "PLAIN" else "Scram"
    path.write_text(
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas(kind, name, ADMIN.get(name, f'{name}-secret'))}\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={TLS / 'authority.pem'}\n"
        "ssl.endpoint.identification.algorithm=\n"
    )
    return path


class Player:
    """Runs commands as one user of one cluster. `access` has the options that connect."""

    def __init__(self, access: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: set[str] = set()  # those that were run
        self._access = [*access, "--timeout", "20"]
        self._monkeypatch = monkeypatch

    @classmethod
    def with_command_config(cls, bootstrap: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> Player:
        return cls(["--bootstrap", bootstrap, "--command-config", str(config)], monkeypatch)

    @classmethod
    def with_settings(cls, bootstrap: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Player:
        pairs = [word for name, text in settings.items() for word in ("-X", f"{name}={text}")]
        return cls(["-b", bootstrap, *pairs], monkeypatch)

    @classmethod
    def with_profile(
        cls, bootstrap: str, settings: dict[str, str], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Player:
        lines = [f'"{name}" = "{text}"' for name, text in settings.items()]
        (home / "tailrace").mkdir()
        path = home / "tailrace" / "profiles.toml"
        path.write_text("\n".join(["[test]", f'bootstrap = "{bootstrap}"', "[test.settings]", *lines]))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
        return cls(["--profile", "test"], monkeypatch)

    def run(self, *arguments: object, stdin: bytes = b"") -> Ran:
        self.commands |= {str(arguments[0]), " ".join(map(str, arguments[:2]))}
        with _stdin(stdin) as file, self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", file)
            return tailrace(*arguments, *self._access)

    def ok(self, *arguments: object, stdin: bytes = b"") -> Ran:
        ran = self.run(*arguments, stdin=stdin)
        assert ran.status == 0, (arguments, ran)
        return ran

    def document(self, *arguments: object, stdin: bytes = b"") -> Any:
        return self.ok(*arguments, "--json", stdin=stdin).json


def kcat_settings(name: str) -> dict[str, str]:
    """Return the settings of a user with the names that librdkafka and kcat have for them."""
    return {**librdkafka("PLAIN", name, ADMIN[name], tls=True), **HOSTNAMES_NOT_CHECKED}


@contextmanager
def _stdin(data: bytes) -> Iterator[TextIO]:
    """Yield a file with this content, which has a descriptor as standard input has."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.buffer.write(data)
        file.buffer.flush()
        file.seek(0)
        yield file


def play(admin: Player, directory: Path, bootstrap: str, broker: int) -> None:
    _play_topics(admin)
    _play_records(admin)
    _play_groups(admin)
    _play_transactions(admin, bootstrap)
    _play_access(admin, directory)
    _play_cluster(admin, directory, broker)
    assert admin.document("topics", "delete", "orders")["deleted"] == ["orders"]
    assert commands_that_connect() - admin.commands == set()


def _play_topics(admin: Player) -> None:
    created = admin.document("topics", "create", "orders", "--partitions", 2)["created"]
    assert [topic["name"] for topic in created] == ["orders"]
    assert "orders" in admin.ok("topics", "list").out
    assert len(admin.document("topics", "describe", "orders")["topics"][0]["partitions"]) == 2
    admin.ok("topics", "alter", "orders", "--partitions", 3)
    admin.ok("configs", "set", "--topic", "orders", "retention.ms=86400000")
    configs = admin.document("configs", "describe", "--topic", "orders")["configs"]
    assert ("retention.ms", "86400000") in [(one["name"], one["value"]) for one in configs]
    admin.ok("configs", "unset", "--topic", "orders", "retention.ms")


def _play_records(admin: Player) -> None:
    lines = b"".join(b"k%d:v%d\n" % (n, n) for n in range(10))
    written = admin.document("produce", "orders", "--partition", 0, "--json", stdin=_json_lines(lines))
    assert written["records"] == 10
    read = admin.ok("consume", "orders", "--json").json_lines
    assert [one["value"] for one in read] == [f"v{n}" for n in range(10)]
    assert "10" in admin.ok("offsets", "orders").out
    named = admin.ok("consume", "-t", "orders", "-p", 0, "-o", -2, "-c", 1, "-e", "-f", r"%t-%p %o %K %k %S %s\n").out
    assert named == "orders-0 8 2 k8 2 v8\n"
    first = admin.ok("consume", "orders", "--group", "readers", "--max", 3, "-f", "%s ").out
    assert first + admin.ok("consume", "orders", "--group", "readers", "-f", "%s ").out == "".join(
        f"v{n} " for n in range(10)
    )
    assert admin.document("groups", "lag", "readers")["maxLag"] == 0
    admin.ok("groups", "delete", "readers")
    planned = admin.document("topics", "trim", "orders", "--before", 4, "--partition", 0)
    assert not planned["trimmed"]
    assert len(admin.ok("consume", "orders").lines) == 10
    trimmed = admin.document("topics", "trim", "orders", "--before", 4, "--partition", 0, "--yes")
    assert trimmed["partitions"] == [{"partition": 0, "from": 0, "to": 4}]
    assert len(admin.ok("consume", "orders").lines) == 6


def _json_lines(lines: bytes) -> bytes:
    found = []
    for line in lines.decode().splitlines():
        key, _, value = line.partition(":")
        found.append(json.dumps({"key": key, "value": value}))
    return ("\n".join(found) + "\n").encode()


def _play_groups(admin: Player) -> None:
    reset = admin.document("groups", "reset", "billing", "--topic", "orders", "--to-earliest", "--yes")
    assert reset["executed"]
    assert "billing" in admin.ok("groups", "list").out
    assert admin.document("groups", "describe", "billing")["groups"][0]["group"] == "billing"
    assert admin.document("groups", "lag", "billing")["maxLag"] == 6
    admin.ok("groups", "delete-offsets", "billing", "--topic", "orders:1")
    assert admin.document("groups", "delete", "billing")["deleted"] == ["billing"]


def _play_transactions(admin: Player, bootstrap: str) -> None:
    """Leave a transaction open, and end it in its partition."""
    producer = Producer({"bootstrap.servers": bootstrap, **_for_librdkafka("admin"), "transactional.id": "payments"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"paid", partition=2)
    assert producer.flush(20) == 0
    (listed,) = admin.document("transactions", "list", "--state", "Ongoing")["transactions"]
    (described,) = admin.document("transactions", "describe", "payments")["transactions"]
    assert (listed["transactionalId"], described["state"]) == ("payments", "Ongoing")
    assert described["partitions"] == [{"topic": "orders", "partition": 2}]
    assert admin.document("transactions", "find-hanging", "--topic", "orders")["hanging"] == []
    aborted = admin.document("transactions", "abort", "orders-2", "--start-offset", 0)["aborted"]
    assert (aborted["producerId"], aborted["startOffset"]) == (described["producerId"], 0)
    assert admin.ok("consume", "orders", "--partition", 2, "--isolation", "read_committed").out == ""
    producer.abort_transaction(20)


def _for_librdkafka(name: str) -> dict[str, str]:
    return {**librdkafka("PLAIN", name, ADMIN[name], tls=True), "ssl.endpoint.identification.algorithm": "none"}


def _play_access(admin: Player, directory: Path) -> None:
    added = admin.document("acls", "add", "--principal", "User:bob", "--operation", "Read", "--topic", "orders")
    assert added["added"][0]["operation"] == "read"
    admin.ok("acls", "add", "--principal", "User:bob", "--operation", "all", "--group", "b-", "--prefixed", "--deny")
    assert len(admin.document("acls", "list", "--principal", "User:bob")["acls"]) == 2
    assert len(admin.document("acls", "list", "--group", "b-1", "--applying")["acls"]) == 1
    assert admin.document("acls", "list", "--group", "b-1")["acls"] == []
    assert not admin.document("acls", "remove", "--principal", "User:bob")["removed"]
    assert len(admin.document("acls", "remove", "--principal", "User:bob", "--yes")["acls"]) == 2
    assert admin.document("acls", "list", "--principal", "User:bob")["acls"] == []

    password = directory / "carol.txt"
    password.write_text("carol-secret\n")
    admin.ok("users", "set", "carol", "--password-file", password)
    admin.ok("users", "set", "carol", "--mechanism", "SCRAM-SHA-256", stdin=b"carol-secret\n")
    users = admin.document("users", "list")["users"]
    assert [one["mechanism"] for one in users if one["name"] == "carol"] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    removed = admin.document("users", "remove", "carol", "--mechanism", "SCRAM-SHA-256")["removed"]
    assert removed["mechanisms"] == ["SCRAM-SHA-256"]
    assert admin.run("users", "remove", "carol", "--mechanism", "SCRAM-SHA-256").status == 2

    assert admin.document("quotas", "set", "--client-id", "loader", "producer_byte_rate=1000000")["changes"]
    admin.ok("quotas", "set", "--user", "bob", "--default-client-id", "request_percentage=50")
    quotas = admin.document("quotas", "list", "--client-id", "loader")["quotas"]
    assert quotas == [{"entity": {"client-id": "loader"}, "quotas": {"producer_byte_rate": 1000000.0}}]
    admin.ok("quotas", "remove", "--client-id", "loader")
    assert admin.document("quotas", "list", "--client-id", "loader")["quotas"] == []
    assert admin.run("quotas", "remove", "--client-id", "loader").status == 2
    admin.ok("quotas", "remove", "--user", "bob", "--default-client-id", "request_percentage")


def _play_cluster(admin: Player, directory: Path, broker: int) -> None:
    plan = directory / "plan.json"
    plan.write_text(admin.ok("reassign", "plan", "--topic", "orders").out)
    assert json.loads(plan.read_text())["partitions"][0]["replicas"] == [broker]
    assert admin.ok("reassign", "plan", "--topic", "orders", "--current").json["version"] == 1
    assert admin.document("reassign", "apply", plan, "--throttle", 1000000)["finished"]
    assert admin.document("reassign", "status")["moving"] == []
    assert admin.document("reassign", "status", plan) == {"moving": [], "notMoved": []}
    assert admin.document("reassign", "cancel", plan, "--yes")["moving"] == []
    admin.ok("reassign", "unthrottle", plan)
    assert admin.document("elect", "preferred", "--topic", "orders")["elected"] == []
    assert admin.document("elect", "unclean", "--topic", "orders:0")["leaderless"] == []
    assert admin.document("cluster", "status")["healthy"]
    for verb in ("verify", "gc"):
        assert admin.document("tier", verb, directory)["findings"] == []
    assert admin.document("cluster", "queries") == {"reads": [], "writes": []}
    admin.ok("top", "--once", "--interval", "0.01")
    alone = admin.run("shards", "rebalance", "--dry-run")
    assert (alone.status, "is not one node with shards" in alone.err) == (2, True)


# Every command that shows or changes something of others, and the part of its error for a user without rights.
REFUSED: list[tuple[str, str]] = [
    ("topics create secret", "AUTHORIZATION_FAILED"),
    ("topics describe orders", "no topic|AUTHORIZATION_FAILED"),
    ("topics alter orders --partitions 9", "no topic|AUTHORIZATION_FAILED"),
    ("topics trim orders --before latest --yes", "no topic|AUTHORIZATION_FAILED"),
    ("topics delete orders", "no topic|AUTHORIZATION_FAILED"),
    ("configs describe --topic orders", "AUTHORIZATION_FAILED"),
    ("configs set --topic orders retention.ms=1", "AUTHORIZATION_FAILED"),
    ("configs unset --topic orders retention.ms", "AUTHORIZATION_FAILED"),
    ("produce orders", "no topic|AUTHORIZATION_FAILED"),
    ("consume orders", "no topic|AUTHORIZATION_FAILED"),
    ("offsets orders", "no topic|AUTHORIZATION_FAILED"),
    ("groups describe billing", "AUTHORIZATION_FAILED"),
    ("groups lag billing", "AUTHORIZATION_FAILED"),
    ("groups reset billing --topic orders --to-latest --yes", "no topic|AUTHORIZATION_FAILED"),
    ("groups delete billing", "AUTHORIZATION_FAILED"),
    ("groups delete-offsets billing --topic orders", "no topic|AUTHORIZATION_FAILED"),
    ("transactions describe payments", "AUTHORIZATION_FAILED"),
    ("transactions find-hanging --topic orders", "no topic|AUTHORIZATION_FAILED"),
    ("transactions abort orders-0 --start-offset 0", "no topic|AUTHORIZATION_FAILED"),
    ("acls list", "AUTHORIZATION_FAILED"),
    ("acls add --principal User:mallory --operation All --cluster", "AUTHORIZATION_FAILED"),
    ("acls remove --principal User:admin --yes", "AUTHORIZATION_FAILED"),
    ("users list", "AUTHORIZATION_FAILED"),
    ("users set admin", "AUTHORIZATION_FAILED"),
    ("users remove admin", "AUTHORIZATION_FAILED"),
    ("quotas list", "AUTHORIZATION_FAILED"),
    ("quotas set --user mallory producer_byte_rate=1", "AUTHORIZATION_FAILED"),
    ("quotas remove --user mallory producer_byte_rate", "AUTHORIZATION_FAILED"),
    ("reassign plan --topic orders", "no topic|AUTHORIZATION_FAILED"),
    ("reassign apply PLAN", "AUTHORIZATION_FAILED"),
    ("reassign status", "AUTHORIZATION_FAILED"),
    ("reassign cancel PLAN --yes", "AUTHORIZATION_FAILED"),
    ("reassign unthrottle PLAN", "AUTHORIZATION_FAILED"),
    ("elect preferred", "AUTHORIZATION_FAILED"),
    ("elect unclean --topic orders --yes", "no topic|AUTHORIZATION_FAILED"),
    ("cluster status", "AUTHORIZATION_FAILED"),
    ("tier verify PLAN", "AUTHORIZATION_FAILED"),
    ("tier gc PLAN --yes", "AUTHORIZATION_FAILED"),
    ("top --once", "AUTHORIZATION_FAILED"),
    ("shards rebalance", "not one node with shards|AUTHORIZATION_FAILED"),
]
# Commands that list what the user may see, and the field that is empty for a user without rights.
EMPTY: dict[str, list[str]] = {
    "topics list": ["topics"],
    "groups list": ["groups"],
    "transactions list": ["transactions"],
    "cluster queries": ["reads", "writes"],
}


def play_as_stranger(stranger: Player, directory: Path) -> None:
    plan = directory / "plan.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}')
    for line, words in REFUSED:
        arguments = [str(plan) if word == "PLAN" else word for word in line.split()]
        ran = stranger.run(
            *arguments, *["--json"] * (line.split()[:2] != ["reassign", "plan"]), stdin=b'{"value": 1}\n'
        )
        assert ran.status in (1, 2), (arguments, ran)
        message = ran.err.splitlines()[-1]
        assert any(word in message for word in words.split("|")), (arguments, message)
    for line, fields in EMPTY.items():
        document = stranger.document(*line.split())
        assert [document[field] for field in fields] == [[]] * len(fields)
    assert commands_that_connect() - stranger.commands == set()
