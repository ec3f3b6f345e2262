"""Authorization like Kafka's: requests of clients with one right, with all but one, and with none.

Each client sends a request of every API (`acl_cases.py`). The effect of ACL entries is compared in
tests/property/test_acls_like_kafka.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.model.acls import (
    ANY,
    CLUSTER_NAME,
    MATCH,
    Acl,
    AclFilter,
    AclResource,
    Operation,
    PatternType,
    Permission,
)
from tailrace.model.errors import ErrorCode
from tailrace.protocol.json_form import base64_uuid_text
from tailrace.protocol.messages import CreateAclsRequest, DeleteAclsRequest
from tests.support.acl_cases import every_case, make
from tests.support.acl_twins import ANYTHING, VERSION, AclTwins, acl_twins, creation, deletion, description
from tests.support.api_twins import Difference
from tests.support.kafka_install import KafkaInstallation

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

NAMES: Mapping[AclResource, tuple[str, ...]] = {
    AclResource.TOPIC: ("orders",),
    AclResource.GROUP: ("g1", "s1", "k1"),
    AclResource.CLUSTER: (CLUSTER_NAME,),
    AclResource.TRANSACTIONAL_ID: ("tx1",),
}
OPERATIONS = tuple(Operation)[1:11]  # READ to IDEMPOTENT_WRITE
READY_TRIES = 200

# (API, path, reason)
KNOWN = (
    ("FindCoordinator", r".*errorMessage", "we report a key type that the version does not have"),
    ("FindCoordinator", r".*\.key", "contains a topic's id"),
    ("DescribeProducers", r".*lastTimestamp", "the time at which a marker was written"),
    ("DescribeTransactions|ListTransactions", r".*producerId", "Kafka has given out other ids before"),
    ("Fetch", r".*records", "markers carry the time at which they were written"),
)


def _is_known(one: Difference) -> bool:
    return any(re.fullmatch(api, one.api) and re.fullmatch(path, one.path) for api, path, _ in KNOWN)


def _all(user: str) -> list[Acl]:
    kinds = [(kind, "*" if kind != AclResource.CLUSTER else CLUSTER_NAME) for kind in NAMES]
    return [
        Acl(kind, name, PatternType.LITERAL, f"User:{user}", "*", Operation.ALL, Permission.ALLOW)
        for kind, name in kinds
    ]


def _on_all(user: str, kind: AclResource, operation: Operation, permission: Permission) -> list[Acl]:
    return [Acl(kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, permission) for name in NAMES[kind]]


def rights_by_user() -> Iterator[tuple[str, list[Acl]]]:
    yield "nobody", []
    yield "everybody", _all("everybody")
    for kind in NAMES:
        user = f"all_{kind.name.lower()}"
        yield user, _on_all(user, kind, Operation.ALL, Permission.ALLOW)
        for operation in OPERATIONS:
            user = f"{kind.name.lower()}_{operation.name.lower()}"
            yield user, _on_all(user, kind, operation, Permission.ALLOW)
            yield f"no_{user}", _all(f"no_{user}") + _on_all(f"no_{user}", kind, operation, Permission.DENY)


USERS = dict(rights_by_user())


@pytest.fixture(scope="module")
def twins(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AclTwins]:
    with acl_twins(kafka, tmp_path_factory.mktemp("acls"), USERS) as made:
        prepare(made)
        yield made


def prepare(twins: AclTwins) -> None:
    """Create the topics, those of the coordinators, and all rights."""
    for side in (twins.admin.kafka, twins.admin.ours):
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("orders", "secret")]
        answer = side.ask(make("CreateTopics", topics=topics, timeout_ms=10_000), 7)
        assert not any(one.error_code for one in answer.topics)
        side.learn()
        state = [{"topic_id": side.topic_id("orders"), "partitions": [{"partition": 0, "state_epoch": 1}]}]
        for kind, key in ((0, "g1"), (1, "tx1"), (2, f"x:{base64_uuid_text(side.topic_id('orders'))}:0")):
            _until_ready(side, make("FindCoordinator", key_type=kind, coordinator_keys=[key]), 6)
        _until_ready(side, make("InitializeShareGroupState", group_id="x", topics=state), 0)
    twins.grant([acl for acls in USERS.values() for acl in acls])
    twins.admin.learn()


def _until_ready(side: Any, request: Any, version: int) -> None:
    for _ in range(READY_TRIES):
        answer = side.ask(request, version)
        codes = [one.error_code for one in getattr(answer, "coordinators", ())]
        codes += [one.error_code for topic in getattr(answer, "results", ()) for one in topic.partitions]
        if codes == [0]:
            return
        time.sleep(0.1)
    raise AssertionError(f"not ready: {answer}")


def test_every_api_requires_kafkas_rights_and_returns_kafkas_errors(twins: AclTwins) -> None:
    found: dict[str, set[str]] = {}
    apis = set()
    for user in USERS:
        sides = twins.of(user)
        sides.patience = 0
        for name, case in every_case():
            request: Any = case(sides.kafka)
            apis.add(request.SCHEMA.api_key)
            both = sides.versions(request.SCHEMA.api_key)
            versions = both if user in ("nobody", "everybody") else both[:1] + both[-1:]
            for one in sides.compare(name, case, _is_known, versions):
                found.setdefault(str(one), set()).add(user)
    assert not found, "\n".join(f"{one} ({', '.join(sorted(users)[:3])})" for one, users in found.items())
    assert apis == API_TABLE.keys() - {17, 36}  # those of SASL come before authentication


TOPIC = Acl(AclResource.TOPIC, "x", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)
ODD = (
    TOPIC,
    TOPIC._replace(resource=99),
    TOPIC._replace(resource=AclResource.CLUSTER),
    TOPIC._replace(resource=AclResource.CLUSTER, name=CLUSTER_NAME, operation=Operation.ALTER),
    TOPIC._replace(resource=AclResource.USER, name="User:b", operation=Operation.CREATE_TOKENS),
    TOPIC._replace(resource=AclResource.DELEGATION_TOKEN, operation=Operation.DESCRIBE),
    TOPIC._replace(resource=AclResource.GROUP, operation=Operation.WRITE),
    TOPIC._replace(name=""),
    TOPIC._replace(name="*"),
    TOPIC._replace(name="x" * 400),
    TOPIC._replace(pattern=PatternType.PREFIXED),
    TOPIC._replace(pattern=77),
    TOPIC._replace(principal="nobody"),
    TOPIC._replace(principal=""),
    TOPIC._replace(principal=":"),
    TOPIC._replace(principal="User:"),
    TOPIC._replace(principal="Group:a:b"),
    TOPIC._replace(host=""),
    TOPIC._replace(host="no address"),
    TOPIC._replace(operation=Operation.ALL),
    TOPIC._replace(operation=Operation.TWO_PHASE_COMMIT),
    TOPIC._replace(operation=88),
    TOPIC._replace(permission=Permission.DENY),
    TOPIC._replace(permission=9),
)
# With these Kafka fails for the request as a whole; we name the wrong entry.
OF_FILTERS = (
    TOPIC._replace(resource=ANY),
    TOPIC._replace(pattern=ANY),
    TOPIC._replace(pattern=MATCH),
    TOPIC._replace(operation=ANY),
    TOPIC._replace(permission=ANY),
)
UNKNOWN = tuple(TOPIC._replace(**{field: 0}) for field in ("resource", "pattern", "operation", "permission"))
FILTERS = (
    ANYTHING,
    ANYTHING._replace(resource=AclResource.TOPIC),
    ANYTHING._replace(resource=99),
    ANYTHING._replace(name="x"),
    ANYTHING._replace(name="xyz"),
    ANYTHING._replace(name="xyz", pattern=MATCH),
    ANYTHING._replace(name="x", pattern=MATCH, resource=AclResource.TOPIC),
    ANYTHING._replace(name="x", pattern=PatternType.PREFIXED),
    ANYTHING._replace(name="*"),
    ANYTHING._replace(name=""),
    ANYTHING._replace(name=None, pattern=MATCH),
    ANYTHING._replace(pattern=66),
    ANYTHING._replace(principal="User:a"),
    ANYTHING._replace(host="*"),
    ANYTHING._replace(operation=Operation.ALL),
    ANYTHING._replace(operation=55),
    ANYTHING._replace(permission=Permission.DENY),
    ANYTHING._replace(permission=44),
)


def test_acls_are_created_described_and_deleted_as_by_kafka(twins: AclTwins) -> None:
    found: list[Difference] = []

    def compare(case: str, request: Any) -> None:
        found.extend(twins.admin.compare(case, lambda _: request, lambda _: False))

    def removes(filters: tuple[AclFilter, ...]) -> DeleteAclsRequest:
        ours = [one._replace(principal="User:a") if one.principal is None else one for one in filters]
        return DeleteAclsRequest(filters=list(map(deletion, ours)))

    for acl in (*ODD, *UNKNOWN):
        compare(f"create {acl}", CreateAclsRequest(creations=[creation(acl)]))
    for acl in OF_FILTERS:
        request = CreateAclsRequest(creations=[creation(acl)])
        answers = [side.ask(request, VERSION).results[0].error_code for side in (twins.admin.kafka, twins.admin.ours)]
        assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST]
    compare("create several", CreateAclsRequest(creations=list(map(creation, ODD))))
    compare("create nothing", CreateAclsRequest(creations=[]))
    twins.wait_for_kafka()
    for one in FILTERS:
        compare(f"describe {one}", description(one))
    for unknown in ("resource", "pattern", "operation", "permission"):
        compare(f"describe no {unknown}", description(ANYTHING._replace(**{unknown: 0})))
        compare(f"remove no {unknown}", removes((ANYTHING._replace(**{unknown: 0}),)))
    for one in FILTERS[:0:-1]:
        compare(f"remove {one}", removes((one,)))
        compare("create several", CreateAclsRequest(creations=list(map(creation, ODD))))
    compare("remove several", removes(FILTERS))
    compare("remove nothing", DeleteAclsRequest(filters=[]))
    twins.wait_for_kafka()
    compare("describe the rest", description(ANYTHING))
    assert not found, "\n".join(map(str, found))
