"""AclTwins: an Apache Kafka and a Tailrace broker with the same ACLs, and clients of both for each principal.

    with acl_twins(kafka, path) as twins:
        twins.grant(Acl(AclResource.TOPIC, "orders", …))
        twins.of("reader").compare("a topic", lambda side: MetadataRequest(...), is_known)

An unauthenticated client is a super user on both sides. Other clients log in with SASL PLAIN at Kafka; at Tailrace the
test sets their principal.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.model.acls import Acl, AclFilter
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    InitProducerIdRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.support.api_twins import ApiTwins, KafkaSide, OurSide
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.memory_files import MemoryFiles
from tests.support.secured import jaas

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PASSWORD = "secret"
VERSION = 3  # version of the three ACL APIs
ANYTHING = AclFilter(1, None, 1, None, None, 1, 1)
PATIENCE_S = 10
_TRIES = 100


class KafkaUser(KafkaSide):
    """A client that authenticates with SASL PLAIN."""

    def __init__(self, port: int, user: str) -> None:
        self._user = user
        super().__init__(port)

    def _connect(self) -> socket.socket:
        connection = super()._connect()
        connection.settimeout(PATIENCE_S)
        for request, version in (
            (SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (SaslAuthenticateRequest(auth_bytes=f"\0{self._user}\0{PASSWORD}".encode()), 2),
        ):
            frame = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "twin"))
            frame += request.encode(version)
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)
        return connection


def secured_properties(broker: KafkaBroker, sasl_port: int, users: Iterable[str]) -> dict[str, str]:
    """Return the settings with which a broker authorizes requests; unauthenticated clients are super users."""
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{sasl_port},"
        f"CONTROLLER://127.0.0.1:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas(
            "Plain", "x", "x", **dict.fromkeys(users, PASSWORD)
        ),
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }


class AclTwins:
    def __init__(self, broker: KafkaBroker, sasl_port: int, ours: Broker) -> None:
        self.ours = ours
        self._sasl_port = sasl_port
        self.admin = ApiTwins(KafkaSide(broker.port), OurSide(ours))
        self._users: dict[str, ApiTwins] = {}

    def of(self, user: str) -> ApiTwins:
        """Return the two sides as a user sees them."""
        twins = self._users.get(user)
        if twins is None:
            ours = OurSide(self.ours, principal=f"User:{user}", listener="SASL_PLAINTEXT")
            twins = self._users[user] = ApiTwins(KafkaUser(self._sasl_port, user), ours)
        twins.kafka.topic_ids, twins.kafka.words = self.admin.kafka.topic_ids, self.admin.kafka.words
        twins.ours.topic_ids, twins.ours.words = self.admin.ours.topic_ids, self.admin.ours.words
        return twins

    def grant(self, acls: Sequence[Acl]) -> None:
        request = CreateAclsRequest(creations=[creation(acl) for acl in acls])
        for side in (self.admin.kafka, self.admin.ours):
            answer = side.ask(request, VERSION)
            assert [one.error_code for one in answer.results] == [0] * len(acls), answer
        self.wait_for_kafka()

    def revoke_all(self) -> None:
        for side in (self.admin.kafka, self.admin.ours):
            answer = side.ask(DeleteAclsRequest(filters=[deletion(ANYTHING)]), VERSION)
            assert [one.error_code for one in answer.filter_results] == [0]
        self.wait_for_kafka()

    def wait_for_kafka(self) -> None:
        """Wait until Kafka's broker knows the ACLs that its controller has."""
        wanted = described_acls(self.admin.ours)
        for _ in range(_TRIES):
            if described_acls(self.admin.kafka) == wanted:
                return
            time.sleep(0.02)
        raise AssertionError("Kafka has different ACLs")

    def close(self) -> None:
        for twins in (self.admin, *self._users.values()):
            twins.kafka.close()


def described_acls(side: KafkaSide | OurSide, wanted: AclFilter = ANYTHING) -> set[Acl]:
    answer = side.ask(description(wanted), VERSION)
    assert answer.error_code == 0
    return {
        Acl(
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for one in answer.resources
        for acl in one.acls
    }


def creation(acl: Acl) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=acl.resource,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _filter_fields(one: AclFilter) -> Mapping[str, object]:
    return {
        "resource_type_filter": one.resource,
        "resource_name_filter": one.name,
        "pattern_type_filter": one.pattern,
        "principal_filter": one.principal,
        "host_filter": one.host,
        "operation": one.operation,
        "permission_type": one.permission,
    }


def deletion(one: AclFilter) -> DeleteAclsRequest.DeleteAclsFilter:
    return DeleteAclsRequest.DeleteAclsFilter(**_filter_fields(one))  # type: ignore[arg-type]


def description(one: AclFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(**_filter_fields(one))  # type: ignore[arg-type]


@contextmanager
def acl_twins(
    kafka: KafkaInstallation, path: Path, users: Iterable[str], properties: Mapping[str, str] | None = None
) -> Iterator[AclTwins]:
    ids = count(1_000_000)
    sasl_port = free_port()
    broker = KafkaBroker(kafka, path)
    broker.properties |= {**secured_properties(broker, sasl_port, users), **(properties or {})}
    with broker:
        ours = open_broker(
            MemoryFiles(),
            BrokerConfig(broker.properties),
            now_ms=int(time.time() * 1000),
            new_id=lambda: next(ids).to_bytes(16, "big"),
            next_int=lambda limit: next(ids) % limit,
        )
        twins = AclTwins(broker, sasl_port, ours)
        for _ in range(_TRIES):  # Kafka needs a while for its first block of producer ids
            if twins.admin.kafka.ask(InitProducerIdRequest(transactional_id=None), 4).error_code == 0:
                break
            time.sleep(0.1)
        try:
            yield twins
        finally:
            twins.close()
