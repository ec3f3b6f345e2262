"""Apache Kafka and Tailrace take turns on one directory: share groups keep members, state and offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    ReadShareGroupStateRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from tests.conformance.test_swap import Place
from tests.support.confluent import create_topic, produce
from tests.support.kafka_broker import KafkaBroker
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 60
GROUP = "sharers"
SET_BY_HAND = "set-by-hand"


@pytest.fixture
def place(tmp_path: Path, kafka_broker: Callable[..., KafkaBroker]) -> Iterator[Place]:
    place = Place(tmp_path / "node", kafka_broker)
    yield place
    if place.ours.process is not None:
        place.ours.kill()


def until(condition: Callable[[], Any]) -> Any:
    """Return the first true result of a condition, which is repeated until then."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def beat(client: RawClient, epoch: int, topics: list[str] | None = None) -> Any:
    """Send a heartbeat, once the coordinator has loaded its state."""
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="member-1", member_epoch=epoch, subscribed_topic_names=topics
    )
    away = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
    return until(lambda: (answer := client.ask(request, 1)).error_code not in away and answer)


def topic_id(client: RawClient) -> bytes:
    (topic,) = client.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="shared")]), 12).topics
    return bytes(topic.topic_id)


def write(client: RawClient, start_offset: int, state_epoch: int) -> None:
    """Write state like the leader for a member that has acknowledged records."""
    batch = WriteShareGroupStateRequest.StateBatch(
        first_offset=start_offset + 2, last_offset=start_offset + 4, delivery_state=2, delivery_count=1
    )
    part = WriteShareGroupStateRequest.PartitionData(
        partition=0,
        state_epoch=state_epoch,
        leader_epoch=-1,
        start_offset=start_offset,
        delivery_complete_count=3,
        state_batches=[batch],
    )
    topic = WriteShareGroupStateRequest.WriteStateData(topic_id=topic_id(client), partitions=[part])
    answer = client.ask(WriteShareGroupStateRequest(group_id=GROUP, topics=[topic]), 1)
    assert answer.results[0].partitions[0].error_code == 0


def read(client: RawClient) -> Any:
    part = ReadShareGroupStateRequest.PartitionData(partition=0, leader_epoch=-1)
    topic = ReadShareGroupStateRequest.ReadStateData(topic_id=topic_id(client), partitions=[part])
    return client.ask(ReadShareGroupStateRequest(group_id=GROUP, topics=[topic]), 0)


def alter(client: RawClient, start_offset: int) -> None:
    part = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
        partition_index=1, start_offset=start_offset
    )
    topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name="shared", partitions=[part])
    answer = client.ask(AlterShareGroupOffsetsRequest(group_id=SET_BY_HAND, topics=[topic]), 0)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)


def facts(client: RawClient) -> dict[str, Any]:
    """Return all facts about the groups, once everything is loaded."""
    described = client.ask(ShareGroupDescribeRequest(group_ids=[GROUP, SET_BY_HAND]), 1)
    asked = [
        DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
        for name in (GROUP, SET_BY_HAND)
    ]
    offsets = client.ask(DescribeShareGroupOffsetsRequest(groups=asked), 1)
    return {
        "described": sorted(to_dict(described, 1)["groups"], key=lambda group: str(group["groupId"])),
        "offsets": {group["groupId"]: group for group in to_dict(offsets, 1)["groups"]},
        "state": to_dict(read(client), 0)["results"],
    }


def check(client: RawClient, before: dict[str, Any]) -> None:
    assert until(lambda: client.ask(FindCoordinatorRequest(key=GROUP), 3).error_code == 0)
    deadline = time.monotonic() + PATIENCE_S
    while (found := facts(client)) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == before


def test_share_groups_keep_members_state_and_offsets_when_the_broker_is_replaced(place: Place) -> None:
    place.ours.start()
    create_topic(place.bootstrap, "shared", 2)
    for partition in (0, 1):
        produce(place.bootstrap, "shared", partition, [b"x"] * 30)
    with RawClient(place.bootstrap) as client:
        client.ask(FindCoordinatorRequest(key=GROUP), 3)
        epoch = beat(client, 0, ["shared"]).member_epoch
        answer = until(lambda: (one := beat(client, epoch, ["shared"])).assignment.topic_partitions and one)
        assert sorted(answer.assignment.topic_partitions[0].partitions) == [0, 1]
        epoch = answer.member_epoch
        write(client, 5, -1)
        alter(client, 7)
        before = until(lambda: (found := facts(client))["offsets"][SET_BY_HAND]["topics"] and found)
    place.ours.kill()

    for number, start in enumerate((place.kafkas.start, place.ours.start, place.kafkas.start)):
        start()
        with RawClient(place.bootstrap) as client:
            check(client, before)
            assert beat(client, epoch).member_epoch == epoch, "the member has to rejoin"
            write(client, 10 + number, -1)
            alter(client, 8 + number)
            before = facts(client)
            assert before["offsets"][SET_BY_HAND]["topics"][0]["partitions"][0]["startOffset"] == 8 + number
        if number == 1:
            assert place.ours.stop() == 0
        else:
            place.kafkas.stop()
