"""ACLs from the request that makes one to the requests that it lets through, on a broker that is alone."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.model.acls import CLUSTER_NAME, Acl, AclResource, Operation, PatternType, Permission
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import CreateAclsRequest, DeleteAclsRequest
from tests.support.acl_cases import make
from tests.support.acl_twins import ANYTHING, AUTHORIZER, creation, deletion, described_acls, description
from tests.support.api_cases.common import batch
from tests.support.api_twins import OurSide
from tests.support.memory_files import MemoryFiles

NOW_MS = int(time.time() * 1000)
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SECURED = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
_ids = count(1)


def start(files: MemoryFiles, settings: dict[str, str]) -> Broker:
    return open_broker(
        files,
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings),
        now_ms=NOW_MS,
        new_id=lambda: next(_ids).to_bytes(16, "big"),
        next_int=lambda limit: next(_ids) % limit,
    )


def acl(operation: Operation, name: str = "orders", resource: AclResource = AclResource.TOPIC) -> Acl:
    return Acl(resource, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW)


def grant(side: OurSide, *acls: Acl) -> None:
    answer = side.ask(CreateAclsRequest(creations=list(map(creation, acls))), 3)
    assert [one.error_code for one in answer.results] == [0] * len(acls)


def revoke(side: OurSide, wanted: Any = ANYTHING) -> int:
    (result,) = side.ask(DeleteAclsRequest(filters=[deletion(wanted)]), 3).filter_results
    return len(result.matching_acls)


@pytest.fixture
def sides() -> tuple[OurSide, OurSide]:
    """Return a super user, who has created a topic, and alice."""
    broker = start(MemoryFiles(), SECURED)
    admin, alice = OurSide(broker), OurSide(broker, principal="User:alice")
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    admin.ask(make("CreateTopics", topics=[topic], timeout_ms=1_000), 7)
    admin.learn()
    alice.topic_ids = admin.topic_ids
    return admin, alice


def produce(side: OurSide, version: int) -> int:
    data = [{"index": 0, "records": batch(NOW_MS, b"v")}]
    topics = [{"name": "orders", "topic_id": side.topic_id("orders"), "partition_data": data}]
    answer = side.ask(make("Produce", acks=1, timeout_ms=1_000, topic_data=topics), version)
    return int(answer.responses[0].partition_responses[0].error_code)


def fetch(side: OurSide, version: int) -> int:
    wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]
    topics = [{"topic": "orders", "topic_id": side.topic_id("orders"), "partitions": wanted}]
    answer = side.ask(make("Fetch", min_bytes=1, max_bytes=1_000, session_epoch=-1, topics=topics), version)
    return int(answer.responses[0].partitions[0].error_code)


def commit(side: OurSide, version: int) -> int:
    partitions = [{"partition_index": 0, "committed_offset": 1}]
    topics = [{"name": "orders", "topic_id": side.topic_id("orders"), "partitions": partitions}]
    answer = side.ask(make("OffsetCommit", group_id="g", generation_id_or_member_epoch=-1, topics=topics), version)
    return int(answer.topics[0].partitions[0].error_code)


def test_acl_requests_without_an_authorizer_get_security_disabled() -> None:
    side = OurSide(start(MemoryFiles(), {}))
    disabled = ErrorCode.SECURITY_DISABLED
    assert side.ask(description(ANYTHING), 3).error_code == disabled
    answer = side.ask(CreateAclsRequest(creations=[creation(acl(Operation.READ))] * 2), 3)
    assert [one.error_code for one in answer.results] == [disabled] * 2
    assert side.ask(DeleteAclsRequest(filters=[deletion(ANYTHING)]), 3).filter_results[0].error_code == disabled


@pytest.mark.parametrize(("ask", "versions"), [(produce, (3, 12, 13, 13)), (fetch, (4, 12, 17, 17))])
def test_produce_and_fetch_check_rights_in_every_version(
    sides: tuple[OurSide, OurSide], ask: Any, versions: tuple[int, ...]
) -> None:
    """The second request of a newer version takes the fast path, which must check the rights too."""
    admin, alice = sides
    assert produce(admin, 13) == 0
    right = acl(Operation.WRITE if ask is produce else Operation.READ)
    for version in versions:
        assert ask(alice, version) == DENIED
        grant(admin, right)
        assert ask(alice, version) == 0
        assert ask(alice, version) == 0
        assert revoke(admin) == 1
        assert ask(alice, version) == DENIED


def test_an_offset_commit_needs_read_on_the_group_and_the_topic(sides: tuple[OurSide, OurSide]) -> None:
    admin, alice = sides
    admin.ask(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
    assert commit(admin, 9) == 0
    for version in (2, 9, 10):
        assert commit(alice, version) == ErrorCode.GROUP_AUTHORIZATION_FAILED
        grant(admin, acl(Operation.READ, "g", AclResource.GROUP))
        assert commit(alice, version) == DENIED
        grant(admin, acl(Operation.READ))
        assert commit(alice, version) == 0
        assert revoke(admin) == 2


def test_metadata_leaves_out_topics_without_the_describe_right(sides: tuple[OurSide, OurSide]) -> None:
    admin, alice = sides
    assert alice.ask(make("Metadata", topics=None), 12).topics == []
    assert [one.name for one in admin.ask(make("Metadata", topics=None), 12).topics] == ["orders"]


@pytest.mark.parametrize(
    "right", [acl(Operation.CREATE, "new"), acl(Operation.CREATE, CLUSTER_NAME, AclResource.CLUSTER)]
)
def test_a_topic_is_created_on_first_use_only_with_the_create_right(sides: tuple[OurSide, OurSide], right: Acl) -> None:
    admin, alice = sides
    asked = make("Metadata", topics=[{"name": "new"}], include_topic_authorized_operations=True)
    grant(admin, acl(Operation.DESCRIBE, "new"))
    (topic,) = alice.ask(asked, 12).topics
    assert (topic.error_code, topic.topic_authorized_operations) == (DENIED, -(2**31))
    grant(admin, right)
    assert [one.error_code for one in alice.ask(asked, 12).topics] == [0]


def test_acls_are_in_force_after_a_restart() -> None:
    files = MemoryFiles()
    broker = start(files, SECURED)
    side = OurSide(broker)
    kept, gone = acl(Operation.READ), acl(Operation.WRITE)
    grant(side, kept, kept, gone)
    assert revoke(side, ANYTHING._replace(operation=Operation.WRITE)) == 1
    broker.close(NOW_MS)
    broker = start(files, SECURED)
    assert described_acls(OurSide(broker)) == {kept}
    assert broker.services.authorizer.allows("User:alice", "::1", Operation.DESCRIBE, AclResource.TOPIC, "orders")
    assert not broker.services.authorizer.allows("User:bob", "::1", Operation.DESCRIBE, AclResource.TOPIC, "orders")
