"""Apache Kafka and Tailrace take turns on one directory, while members of a group continue to read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.messages import (
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.conformance.test_swap import Place
from tests.support.confluent import create_topic, produce
from tests.support.group_watch import GroupWatch
from tests.support.kafka_broker import KafkaBroker
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.kafka

PARTITIONS = 2
PER_TURN = 30
PATIENCE_S = 60


@pytest.fixture
def place(tmp_path: Path, kafka_broker: Callable[..., KafkaBroker]) -> Iterator[Place]:
    place = Place(tmp_path / "node", kafka_broker)
    yield place
    if place.ours.process is not None:
        place.ours.kill()


def ask(client: RawClient, request: Any, version: int) -> Any:
    """Repeat a request until the coordinator has loaded its state."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = client.ask(request, version)
        codes = [answer.error_code] if hasattr(answer, "error_code") else [one.error_code for one in answer.groups]
        if not {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE} & set(codes):
            return answer
        assert time.monotonic() < deadline
        time.sleep(0.05)


def facts(place: Place) -> dict[str, Any]:
    """Return all facts about the groups."""
    with RawClient(place.bootstrap) as client:
        ask(client, FindCoordinatorRequest(key="readers"), 3)
        listed = ask(client, ListGroupsRequest(), 5)
        names = sorted(group.group_id for group in listed.groups)
        described = ask(client, DescribeGroupsRequest(groups=names), 6)
        offsets = {name: ask(client, OffsetFetchRequest(group_id=name, topics=None), 7) for name in names}
    return {
        "listed": sorted(map(str, to_dict(listed, 5)["groups"])),
        "described": {
            group["groupId"]: {**group, "members": sorted(group["members"], key=str)}
            for group in to_dict(described, 6)["groups"]
        },
        "offsets": {
            name: {
                (topic.name, one.partition_index): (one.committed_offset, one.metadata)
                for topic in answer.topics
                for one in topic.partitions
            }
            for name, answer in offsets.items()
        },
    }


def check(place: Place, before: dict[str, Any]) -> None:
    """Check that the facts are unchanged once all partitions are loaded: Kafka does not list groups that it has not
    loaded.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (found := facts(place)) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == before


def commit_by_hand(place: Place, group: str, offset: int) -> None:
    """Commit an offset without being a member."""
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=1, committed_offset=offset, committed_metadata=f"note {offset}"
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="read", partitions=[part])
    with RawClient(place.bootstrap) as client:
        ask(client, FindCoordinatorRequest(key=group), 3)
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])
        assert client.ask(request, 9).topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.slow
def test_a_group_continues_to_read_when_the_broker_is_replaced(place: Place) -> None:
    place.ours.start()
    create_topic(place.bootstrap, "read", PARTITIONS)
    watch = GroupWatch(place.bootstrap, "readers", "read", session_ms=45_000)
    expected: set[tuple[int, int]] = set()

    def turn(number: int) -> None:
        for partition in range(PARTITIONS):
            produce(place.bootstrap, "read", partition, [b"x"] * PER_TURN)
            expected.update((partition, number * PER_TURN + offset) for offset in range(PER_TURN))
        watch.wait_until(lambda: set(watch.read()) == expected)
        watch.wait_until(lambda: sum(len(member.of("committed")) for member in watch.members) == len(expected))
        commit_by_hand(place, f"simple-{number}", number)

    try:
        for _ in range(2):
            watch.start("librdkafka")
        watch.wait_until(lambda: all(len(member.owned) == 1 for member in watch.members))
        turn(0)
        before = facts(place)
        place.ours.kill()

        place.kafkas.start()
        check(place, before)
        turn(1)
        before = facts(place)
        place.kafkas.stop()

        place.ours.start()
        check(place, before)
        turn(2)
        before = facts(place)
        assert place.ours.stop() == 0

        place.kafkas.start()
        check(place, before)
        turn(3)
        assert len(watch.read()) == len(expected), "a record was read twice"
        assert [len(member.of("assigned")) for member in watch.members][1] == 1, "the group has rebalanced"
        assert not any(member.of("refused") for member in watch.members)
        for member in watch.members:
            member.leave()
    finally:
        watch.end()
