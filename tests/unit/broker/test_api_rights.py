"""Every served API checks the rights in the table of rights, and no others."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.handling.handler_binding import bind
from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE
from tailrace.broker.requests.request_context import ConnectionContext, Request
from tailrace.broker.security.api_rights import RIGHTS, Right, guarded
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.fetch_rights import FetchRights
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.security.standard_authorizer import StandardAuthorizer
from tailrace.broker.startup.open_broker import open_broker
from tailrace.model.errors import ErrorCode
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.json_form import base64_uuid_text
from tailrace.protocol.message import Message
from tailrace.protocol.messages import EnvelopeResponse
from tests.support.acl_cases import every_case, make
from tests.support.api_twins import OurSide
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import with_authorizer, with_fetch_authorizer, with_services

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
SASL = "SASL_PLAINTEXT"  # where tokens may be asked for
SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "listeners": f"PLAINTEXT://127.0.0.1:9092,{SASL}://127.0.0.1:9093",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "delegation.token.secret.key": "secret",
}
UNLISTED = 58  # Envelope, which is served to nobody


class Recorder(StandardAuthorizer):
    """Denies what is asked of some kinds of resources, and knows what it was asked."""

    def __init__(self, *denied: AclResource) -> None:
        super().__init__()
        self.asked: set[Right] = set()
        self._denied = denied

    def allows_silently(
        self, principal: str, host: str, operation: Operation, resource: AclResource, name: str
    ) -> bool:
        self.asked.add(Right(operation, resource))
        return resource not in self._denied

    def allows_some(self, principal: str, host: str, operation: Operation, resource: AclResource) -> bool:
        return self.allows_silently(principal, host, operation, resource, "")


@pytest.fixture
def broker() -> Broker:
    """Return a broker with groups of all types that have members, and with an open transaction."""
    ids = count(1)
    made = open_broker(
        MemoryFiles(),
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings=SETTINGS),
        now_ms=int(time.time() * 1000),
        new_id=lambda: next(ids).to_bytes(16, "big"),
        next_int=lambda limit: next(ids) % limit,
    )
    token = OurSide(made, principal="User:bob", listener=SASL).ask(make("CreateDelegationToken"), 3)
    assert token.error_code == 0
    side = OurSide(made)
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("orders", "secret", "victim")]
    side.ask(make("CreateTopics", topics=topics, timeout_ms=1_000), 7)
    for kind in range(3):
        side.ask(make("FindCoordinator", key_type=kind, coordinator_keys=[f"g:{base64_uuid_text(bytes(16))}:0"]), 6)
    for one in _members():
        assert side.ask(one, API_TABLE[one.SCHEMA.api_key].max_version).error_code == 0  # type: ignore[attr-defined]
    # By its second heartbeat the partition's state is begun, and it is given to the member.
    answer = side.ask(make("ShareGroupHeartbeat", group_id="s1", member_id=MEMBER, member_epoch=2), 1)
    assert answer.assignment.topic_partitions
    reported = side.ask(make("InitProducerId", transactional_id="tx1", transaction_timeout_ms=60_000), 4)
    added = make(
        "AddPartitionsToTxn",
        v3_and_below_transactional_id="tx1",
        v3_and_below_producer_id=reported.producer_id,
        v3_and_below_producer_epoch=reported.producer_epoch,
        v3_and_below_topics=[{"name": "orders", "partitions": [0]}],
    )
    assert side.ask(added, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    return made


def _members() -> Iterator[Message]:
    member: dict[str, Any] = {"member_id": MEMBER, "member_epoch": 0}
    subscribed = {"subscribed_topic_names": ["orders"]}
    more = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
    yield make("ConsumerGroupHeartbeat", group_id="g1", **member, **subscribed, **more)
    yield make("ShareGroupHeartbeat", group_id="s1", **member, **subscribed)
    yield _streams_member("k1")


def _streams_member(group: str) -> Message:
    made = {"name": f"{group}-made"}
    return make(
        "StreamsGroupHeartbeat",
        group_id=group,
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        process_id="p",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        topology={
            "epoch": 0,
            "subtopologies": [
                {"subtopology_id": "0", "source_topics": ["orders"], "state_changelog_topics": [made]},
            ],
        },
    )


def _cases(side: OurSide) -> Iterator[Message]:
    for _, case in every_case():
        yield case(side)
    for epoch, name in enumerate(("ShareFetch", "ShareAcknowledge")):
        topics = [{"topic_id": side.topic_id("orders"), "partitions": [{"partition_index": 0}]}]
        yield make(name, group_id="s1", member_id=MEMBER, share_session_epoch=epoch, topics=topics)
    yield _streams_member("k9")
    yield make("DeleteTopics", topics=[{"name": "victim"}], timeout_ms=1_000)


def _ask_all(broker: Broker, authorizer: Recorder, asked: dict[int, set[Right]]) -> None:
    trusted = with_authorizer(broker, StandardAuthorizer(frozenset({"User:alice"})))
    trusted = with_fetch_authorizer(trusted, None)
    side = OurSide(trusted, principal="User:alice", listener=SASL)
    side.learn()
    asked_broker = with_authorizer(broker, authorizer)
    asked_broker = with_fetch_authorizer(asked_broker, FetchRights(authorizer))
    side._broker = asked_broker
    for request in _cases(side):
        row = API_TABLE[request.SCHEMA.api_key]
        authorizer.asked.clear()
        for version in range(row.max_version, row.min_version - 1, -1):
            try:
                side.send(row.key, version, request.encode(version))
            except UnwritableMessage:
                continue
            break
        asked[row.key] |= authorizer.asked


def test_every_api_has_an_entry_in_the_table_of_rights() -> None:
    assert RIGHTS.keys() == API_TABLE.keys() | TELEMETRY_TABLE.keys()


def test_handlers_check_exactly_the_rights_of_the_table(broker: Broker) -> None:
    asked: dict[int, set[Right]] = defaultdict(set)
    everything = tuple(AclResource)
    for denied in (everything, (AclResource.CLUSTER,), ()):
        _ask_all(broker, Recorder(*denied), asked)
    assert {key.name: set(map(str, asked[key])) for key in RIGHTS} == {
        key.name: set(map(str, rights)) for key, rights in RIGHTS.items()
    }


def test_an_api_without_an_entry_is_allowed_for_super_users_only(broker: Broker) -> None:
    served: list[Request] = []
    handler = guarded(UNLISTED, lambda request, now_ms: served.append(request))
    request = Request(ConnectionContext(1, principal="User:alice"), UNLISTED, 0, 1, None, None, 0)
    permissions = Permissions(StandardAuthorizer(frozenset({"User:admin"})))
    handler = bind(handler, with_services(broker, permissions=permissions).services)
    answer = handler(request, 0)
    assert isinstance(answer, EnvelopeResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    handler(request._replace(context=ConnectionContext(1, principal="User:admin")), 0)
    assert len(served) == 1
