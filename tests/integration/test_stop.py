"""A broker that stops answers the requests that wait for records or for members of a group, and ends at once.

All waits are ten minutes, and so is the time of `serve` for pending responses. A broker that waits fails the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

import tailrace
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    MetadataRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from tests.support.command import tailrace as command
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

LONG_MS = 600_000
REBALANCE_DELAY = "group.initial.rebalance.delay.ms"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
Running: TypeAlias = tuple[str, Callable[[], object]]  # the address, and the function that stops the broker


@contextmanager
def embedded(path: Path) -> Iterator[Running]:
    with tailrace.Broker(config={REBALANCE_DELAY: LONG_MS}) as broker:
        yield broker.bootstrap, broker.stop


@contextmanager
def served(path: Path) -> Iterator[Running]:
    settings = (f"{REBALANCE_DELAY}={LONG_MS}", f"tailrace.drain.ms={LONG_MS}")
    with TailraceProcess(path / "data", "-o", settings[0], "-o", settings[1]) as broker:
        yield broker.bootstrap, broker.stop


@pytest.mark.parametrize("start", [embedded, served])
def test_a_stop_answers_waiting_fetches_and_joins_at_once(
    start: Callable[[Path], AbstractContextManager[Running]], tmp_path: Path
) -> None:
    with start(tmp_path) as (bootstrap, stop):
        assert command("topics", "create", "orders", "--bootstrap", bootstrap).status == 0
        with RawClient(bootstrap) as fetcher, RawClient(bootstrap) as member, RawClient(bootstrap) as sharer:
            fetcher.send(fetch(), 11)
            find_coordinator(member, "billing")
            member.send(join(member), 5)
            share_fetch(sharer, bootstrap)
            assert command("topics", "list", "--bootstrap", bootstrap).status == 0  # the broker has the requests
            stop()
            fetched = fetcher.receive(ApiKey.FETCH, 11)
            assert fetched.responses[0].partitions[0].error_code == ErrorCode.NONE
            assert not fetched.responses[0].partitions[0].records
            assert member.receive(ApiKey.JOIN_GROUP, 5).error_code == ErrorCode.NOT_COORDINATOR
            assert sharer.receive(ApiKey.SHARE_FETCH, 1).error_code == ErrorCode.NONE


def fetch() -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic="orders", partitions=[partition])
    return FetchRequest(replica_id=-1, max_bytes=1 << 20, min_bytes=1, max_wait_ms=LONG_MS, topics=[topic])


def find_coordinator(client: RawClient, group: str) -> None:
    while client.ask(FindCoordinatorRequest(key=group, key_type=0), 1).error_code:
        pass


def join(client: RawClient) -> JoinGroupRequest:
    """Return the request with the member id that the coordinator has given. The first join waits for others."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="billing",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    request.member_id = client.ask(request, 5).member_id
    return request


def share_fetch(client: RawClient, bootstrap: str) -> None:
    """Become a member of a share group, and send a fetch of it that waits, after one that does not."""
    find_coordinator(client, "sharers")
    beat = ShareGroupHeartbeatRequest(group_id="sharers", member_id=MEMBER, subscribed_topic_names=["orders"])
    while (answer := client.ask(beat, 1)).assignment is None or not answer.assignment.topic_partitions:
        beat = ShareGroupHeartbeatRequest(group_id="sharers", member_id=MEMBER, member_epoch=answer.member_epoch)
    (topic,) = client.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")]), 12).topics
    partition = ShareFetchRequest.FetchPartition(partition_index=0)
    request = ShareFetchRequest(
        group_id="sharers",
        member_id=MEMBER,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[ShareFetchRequest.FetchTopic(topic_id=topic.topic_id, partitions=[partition])],
    )
    assert client.ask(request, 1).error_code == ErrorCode.NONE
    request.share_session_epoch, request.max_wait_ms, request.topics = 1, LONG_MS, []
    client.send(request, 1)
