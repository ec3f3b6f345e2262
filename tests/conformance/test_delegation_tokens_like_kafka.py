"""Delegation tokens: the same requests of several users to Apache Kafka and to Tailrace, and logins with the tokens.

Tokens are identified by the names that the play gives them; times are minutes from now.
"""

from __future__ import annotations

import base64
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.security.sasl import exchange_of
from tailrace.client.security.security import Sasl
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.storage_format import read_identity
from tailrace.model.acls import Acl, AclResource, Operation, PatternType, Permission
from tailrace.model.errors import ErrorCode
from tailrace.protocol import messages as m
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.registry import response_class
from tests.support.acl_twins import AUTHORIZER, PASSWORD, creation
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kraft_broker import kraft_broker
from tests.support.log_oracle import LogOracle
from tests.support.secured import jaas
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

USERS = ("alice", "bob", "carol", "dave")
SECRET = {"delegation.token.secret.key": "a secret of all brokers"}
TIMES = frozenset(
    {"issueTimestampMs", "expiryTimestampMs", "maxTimestampMs", "issueTimestamp", "expiryTimestamp", "maxTimestamp"}
)


class Stream:
    """One connection; plain connections skip `log_in`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def ask(self, request: Any, version: int) -> Any:
        """Return the response, or None if the broker closed the connection."""
        key = request.SCHEMA.api_key
        frame = write_request_header(RequestHeader(key, version, 1, "test")) + request.encode(version)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            size = self._socket.recv(4, socket.MSG_WAITALL)
        except ConnectionError:
            return None
        if len(size) < 4:
            return None
        answer = self._socket.recv(*struct.unpack(">i", size), socket.MSG_WAITALL)
        return response_class(key).decode(answer, version, read_response_header(key, version, answer)[1])

    def log_in(self, sasl: Sasl) -> tuple[int, str, int]:
        """Return error code, message and session lifetime of the last response."""
        assert self.ask(m.SaslHandshakeRequest(mechanism=sasl.mechanism), 1).error_code == 0
        exchange = exchange_of(sasl)
        words = next(exchange)
        while True:
            answer = self.ask(m.SaslAuthenticateRequest(auth_bytes=words), 2)
            if answer.error_code:
                return answer.error_code, answer.error_message, 0
            try:
                words = exchange.send(bytes(answer.auth_bytes))
            except StopIteration:
                return 0, "", answer.session_lifetime_ms

    def close(self) -> None:
        self._socket.close()


class Side:
    """A broker of either kind, by its ports, and the tokens that it created."""

    def __init__(self, port: int, sasl_port: int) -> None:
        self.port = port
        self.sasl_port = sasl_port
        self.hmacs: dict[str, bytes] = {}
        self.names: dict[str, str] = {}  # token id → name in the play

    def settings(self, more: Mapping[str, str]) -> dict[str, str]:
        ports = f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        word = dict.fromkeys(USERS, PASSWORD)
        prefix = "listener.name.sasl_plaintext"
        return {
            "listeners": ports,
            "advertised.listeners": ports,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{prefix}.plain.sasl.jaas.config": jaas("Plain", "x", "x", **word),
            f"{prefix}.scram-sha-256.sasl.jaas.config": jaas("Scram", "x", "x"),
            f"{prefix}.scram-sha-512.sasl.jaas.config": jaas("Scram", "x", "x"),
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "connection.failed.authentication.delay.ms": "0",
            **more,
        }

    @contextmanager
    def stream(self, user: str | None) -> Iterator[Stream]:
        """Connect as a user, or without a login."""
        stream = Stream(self.port if user is None else self.sasl_port)
        try:
            if user is not None:
                assert stream.log_in(Sasl(mechanism="PLAIN", username=user, password=PASSWORD)) == (0, "", 0)
            yield stream
        finally:
            stream.close()

    def token(self, name: str, mechanism: str = "SCRAM-SHA-256") -> Sasl:
        (token_id,) = (one for one, known in self.names.items() if known == name)
        password = base64.b64encode(self.hmacs[name]).decode()
        return Sasl(mechanism=mechanism, username=token_id, password=password, has_token=True)

    def plain(self, response: Any, version: int, name: str = "") -> Any:
        if isinstance(response, m.CreateDelegationTokenResponse) and response.token_id:
            assert len(response.token_id) == 22
            self.names[response.token_id] = name
            self.hmacs[name] = bytes(response.hmac)
        return None if response is None else self._plain(to_dict(response, version))

    def _plain(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._plain(one, name) for name, one in value.items() if name != "throttleTimeMs"}
        if isinstance(value, list):
            return sorted((self._plain(one) for one in value), key=str)
        if key in TIMES and value > 0:
            return "forever" if value == 2**63 - 1 else round((value / 1000 - time.time()) / 60)
        if key == "hmac":
            return len(value)
        return self.names.get(value, value) if key == "tokenId" else value


Request = Callable[[Side], Any]


def create(
    name: str = "", *, owner: str | None = None, kind: str | None = "User", renewers: Any = (), life_ms: int = -1
) -> Request:
    made = m.CreateDelegationTokenRequest
    people = [made.CreatableRenewers(principal_type=one, principal_name=who) for one, who in renewers]
    fields = {"owner_principal_type": kind, "owner_principal_name": owner} if owner is not None else {}
    return lambda _: made(renewers=people, max_lifetime_ms=life_ms, **fields)


def renew(name: str, period_ms: int = -1) -> Request:
    return lambda side: m.RenewDelegationTokenRequest(hmac=side.hmacs.get(name, b"none"), renew_period_ms=period_ms)


def expire(name: str, period_ms: int = -1) -> Request:
    return lambda side: m.ExpireDelegationTokenRequest(
        hmac=side.hmacs.get(name, b"none"), expiry_time_period_ms=period_ms
    )


def describe(*owners: str, all_owners: bool = False) -> Request:
    owner = m.DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    named = None if all_owners else [owner(principal_type="User", principal_name=one) for one in owners]
    return lambda _: m.DescribeDelegationTokenRequest(owners=named)


USER_BOB = ("User", "bob")
# (user, name of the token, version, request)
PLAY: list[tuple[str | None, str, int, Request]] = [
    (None, "", 3, create()),
    (None, "", 2, renew("x")),
    (None, "", 2, expire("x")),
    (None, "", 3, describe(all_owners=True)),
    ("alice", "first", 3, create()),
    ("alice", "second", 2, create(renewers=[USER_BOB, ("User", "")])),
    ("alice", "third", 1, create(life_ms=3_600_000)),
    ("alice", "long", 3, create(life_ms=2**63 - 1)),
    ("alice", "zero", 3, create(life_ms=0)),
    ("alice", "", 3, create(renewers=[("Group", "bob")])),
    ("alice", "", 3, create(owner="dave")),
    ("alice", "own", 3, create(owner="alice")),
    ("alice", "empty", 3, create(owner="")),
    ("bob", "", 3, create(owner="bob", kind="Group")),
    ("carol", "for dave", 3, create(owner="dave", renewers=[USER_BOB])),
    ("bob", "bob's", 3, create()),
    ("alice", "", 3, describe(all_owners=True)),
    ("alice", "", 3, describe()),
    ("alice", "", 2, describe("alice")),
    ("alice", "", 3, describe("bob", "nobody")),
    ("bob", "", 3, describe(all_owners=True)),
    ("bob", "", 3, describe("alice", "dave")),
    ("carol", "", 3, describe(all_owners=True)),
    ("dave", "", 1, describe(all_owners=True)),
    ("bob", "", 2, renew("second", 7_200_000)),
    ("bob", "", 2, renew("first")),
    ("bob", "", 2, renew("none")),
    ("alice", "", 1, renew("first", 2**63 - 1)),
    ("alice", "", 2, renew("third")),
    ("alice", "", 2, renew("first", 0)),
    ("dave", "", 2, renew("for dave", 3_600_000)),
    ("carol", "", 2, renew("for dave")),
    ("bob", "", 2, expire("first")),
    ("bob", "", 2, expire("none")),
    ("bob", "", 2, expire("second", 600_000)),
    ("alice", "", 1, expire("first", 2**63 - 1)),
    ("alice", "", 2, expire("long")),
    ("alice", "", 2, expire("long")),
    ("alice", "", 2, renew("long")),
    ("alice", "", 2, expire("zero", 0)),
    ("alice", "", 2, renew("zero")),
    ("alice", "", 2, expire("zero", 1_000)),
    ("alice", "", 3, describe(all_owners=True)),
    ("alice", "", 2, expire("zero")),
    ("alice", "brief", 3, create()),
    ("alice", "", 2, expire("brief", 0)),
]

RIGHTS = [
    Acl(resource, name, PatternType.LITERAL, "User:carol", "*", operation, Permission.ALLOW)
    for resource, name, operation in (
        (AclResource.USER, "User:dave", Operation.CREATE_TOKENS),
        (AclResource.USER, "User:dave", Operation.DESCRIBE_TOKENS),
    )
]


def play(side: Side, wanted: list[Any] | None = None) -> list[Any]:
    """Return the responses to the play. Kafka learns of a token a little later, so a request is repeated until
    `wanted`.
    """
    received: list[Any] = []
    for number, (user, name, version, make) in enumerate(PLAY):
        # A token that expires now is expired in the next millisecond, and Kafka's controller uses the tokens that its
        # own publisher has applied.
        time.sleep(0.005 if wanted is None else 0.2)
        deadline = time.monotonic() + (0 if wanted is None or name else 10)
        while True:
            with side.stream(user) as stream:
                answer = side.plain(stream.ask(make(side), version), version, name)
            if time.monotonic() >= deadline or (wanted is not None and answer == wanted[number]):
                break
            time.sleep(0.1)
        received.append(answer)
    return received


def token_records(data: Path) -> list[str]:
    """Return the token records of a data directory that no broker uses now, without ids and times."""
    files = DiskFiles()
    log = MetadataLog(
        files, str(data), read_identity(files, str(data)), controller_endpoints=(Endpoint("C", "h", 1),), now_ms=0
    )
    log.abandon()
    found = []
    for token in log.image.delegation_tokens.values():
        times = token.issue_timestamp, token.max_timestamp, token.expiration_timestamp
        rounded = [round((one - token.issue_timestamp) / 60_000) for one in times]
        found.append((token.owner, token.requester, list(token.renewers), rounded))
    return sorted(map(str, found))


@contextmanager
def both(kafka: KafkaInstallation, path: Path, more: Mapping[str, str]) -> Iterator[tuple[Any, Any, Side, Side]]:
    theirs, ours = (Side(free_port(), free_port()) for _ in range(2))
    with ExitStack() as stack:
        broker = KafkaBroker(kafka, path / "kafka", port=theirs.port)
        settings = theirs.settings(more)
        settings["listeners"] += f",CONTROLLER://127.0.0.1:{broker.controller_port}"
        broker.properties |= settings
        stack.enter_context(broker)
        options = [part for key, text in ours.settings(more).items() for part in ("-o", f"{key}={text}")]
        process = stack.enter_context(TailraceProcess(path / "ours" / "data", *options, port=ours.port))
        for side in (theirs, ours):
            with side.stream(None) as stream:
                answer = stream.ask(m.CreateAclsRequest(creations=[creation(one) for one in RIGHTS]), 3)
                assert [one.error_code for one in answer.results] == [0] * len(RIGHTS)
        time.sleep(0.5)
        yield broker, process, theirs, ours


def test_requests_and_logins_with_tokens_are_answered_like_kafka(
    kafka: KafkaInstallation, log_oracle: LogOracle, tmp_path: Path
) -> None:
    with both(kafka, tmp_path, SECRET) as (broker, process, theirs, ours):
        answers = play(ours)
        assert play(theirs, answers) == answers
        time.sleep(1)  # until Kafka's broker knows that the last token has expired
        assert _logins(ours) == _logins(theirs)
        process.stop()
        broker.stop()
        assert token_records(process.data) == token_records(broker.data)
        assert token_records(process.data)
        # Each broker continues with the other's directory: our tokens are valid at Kafka.
        _swap(kafka, process, tmp_path, ours)


def _logins(side: Side) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for label, sasl in {
        "SHA-256": side.token("first"),
        "SHA-512": side.token("second", "SCRAM-SHA-512"),
        "for another": side.token("for dave"),
        "removed": side.token("long"),
        "expired and not yet removed": side.token("brief"),
        "not a token login": replace(side.token("first"), has_token=False),
        "wrong password": replace(side.token("first"), password="x"),
        "unknown": Sasl(mechanism="SCRAM-SHA-256", username="nobody", password="x", has_token=True),
    }.items():
        stream = Stream(side.sasl_port)
        code, message, lifetime_ms = stream.log_in(sasl)
        found[label] = code, message, round(lifetime_ms / 60_000)
        if not code:
            # A login by token may not create or renew tokens, and has the owner's principal.
            refused = [side.plain(stream.ask(make(side), 2), 2) for make in (create(), renew("first"), expire("first"))]
            refused.append(side.plain(stream.ask(describe(all_owners=True)(side), 2), 2))
            found[label] += (refused, stream.ask(m.MetadataRequest(topics=[]), 9) is not None)
        stream.close()
    return found


def _await_login(side: Side, name: str) -> None:
    """Log in with a token, once the broker knows it."""
    deadline = time.monotonic() + 20
    while True:
        stream = Stream(side.sasl_port)
        code, message, _ = stream.log_in(side.token(name, "SCRAM-SHA-512"))
        stream.close()
        if not code:
            return
        assert time.monotonic() < deadline, message
        time.sleep(0.2)


def _swap(kafka: KafkaInstallation, process: TailraceProcess, path: Path, ours: Side) -> None:
    broker = KafkaBroker(kafka, path / "swapped", port=ours.port)
    settings = ours.settings(SECRET)
    settings["listeners"] += f",CONTROLLER://127.0.0.1:{ours.port + 1}"
    broker.properties |= settings | {
        "log.dirs": str(process.data),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ours.port + 1}",
    }
    with broker:
        _await_login(ours, "first")
        with ours.stream("alice") as stream:
            answer = ours.plain(stream.ask(describe(all_owners=True)(ours), 3), 3)
        found = {one["tokenId"] for one in answer["tokens"]}
        assert found - {"brief"} == {"first", "second", "third", "own", "empty"}


def test_java_tools_create_and_use_a_token(log_oracle: LogOracle, tmp_path: Path) -> None:
    side = Side(free_port(), free_port())
    options = [part for key, text in side.settings(SECRET).items() for part in ("-o", f"{key}={text}")]
    address = f"127.0.0.1:{side.sasl_port}"

    def run(tool: str, jaas_config: str, mechanism: str, *arguments: str) -> str:
        client = tmp_path / "client.properties"
        client.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas_config}\n"
        )
        where = ("--bootstrap-server", address, "--command-config", str(client))
        return log_oracle.tool(f"org.apache.kafka.tools.{tool}", *where, *arguments)

    alice = jaas("Plain", "alice", PASSWORD), "PLAIN"
    with TailraceProcess(tmp_path / "ours" / "data", *options, port=side.port):
        made = run("DelegationTokenCommand", *alice, "--create", "--max-life-time-period", "-1")
        token_id, hmac = made.strip().splitlines()[-1].split()[:2]
        token = jaas("Scram", token_id, hmac).replace(";", ' tokenauth="true";')
        assert run("TopicCommand", token, "SCRAM-SHA-512", "--list").strip() == ""
        listed = run("DelegationTokenCommand", *alice, "--describe", "--owner-principal", "User:alice")
        assert token_id in listed
        run("DelegationTokenCommand", *alice, "--renew", "--hmac", hmac, "--renew-time-period", "1000")
        run("DelegationTokenCommand", *alice, "--expire", "--hmac", hmac, "--expiry-time-period", "-1")
        assert token_id not in run("DelegationTokenCommand", *alice, "--describe", "--owner-principal", "User:alice")


@pytest.mark.slow
def test_in_a_cluster_kafkas_controllers_create_tokens_that_our_brokers_accept(
    kafka: KafkaInstallation, tmp_path: Path
) -> None:
    side = Side(free_port(), free_port())
    settings = side.settings(SECRET)
    ours = {key: text for key, text in settings.items() if key != "advertised.listeners"}
    common = {key: settings[key] for key in ("listener.security.protocol.map", "authorizer.class.name", "super.users")}
    with KafkaControllers(kafka, tmp_path, properties={**common, **SECRET}) as controllers:
        ours["inter.broker.listener.name"] = "PLAINTEXT"
        with kraft_broker(controllers, tmp_path / "ours" / "data", 1, ours):
            with side.stream("alice") as stream:
                made = side.plain(stream.ask(create(renewers=[USER_BOB])(side), 3), 3, "first")
                assert (made["errorCode"], made["principalName"]) == (0, "alice")
                refused = side.plain(stream.ask(create(owner="dave")(side), 3), 3)
                assert refused["errorCode"] == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
                _await_login(side, "first")
                reported = side.plain(stream.ask(describe(all_owners=True)(side), 3), 3)
                assert [one["tokenId"] for one in reported["tokens"]] == ["first"]
            with side.stream("bob") as stream:
                deadline = time.monotonic() + 20  # the controller finds a token by its HMAC a little later
                while stream.ask(renew("first")(side), 2).error_code:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)
                assert side.plain(stream.ask(expire("first")(side), 2), 2)["errorCode"] == 0
            with side.stream(None) as stream:
                add = m.AddRaftVoterRequest(cluster_id="other", voter_id=7, voter_directory_id=b"d" * 16)
                assert stream.ask(add, 1).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
                assert stream.ask(create()(side), 3).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_key_tokens_are_off_as_in_kafka(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with both(kafka, tmp_path, {}) as (_, _, theirs, ours):
        steps = [one for one in PLAY if one[0] in (None, "alice")][:12]
        received = []
        for side in (theirs, ours):
            found = []
            for user, name, version, make in steps:
                with side.stream(user) as stream:
                    found.append(side.plain(stream.ask(make(side), version), version, name))
            received.append(found)
        assert received[1] == received[0]
