"""Apache Kafka and Tailrace take turns on one directory: an application's members keep their epochs and their tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.messages import StreamsGroupDescribeRequest
from tests.conformance.test_swap import Place
from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker
from tests.support.raw_client import RawClient
from tests.support.streams_member import PATIENCE_S, StreamsMember, reconcile, word_count

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

GROUP = "application"


@pytest.fixture
def place(tmp_path: Path, kafka_broker: Callable[..., KafkaBroker]) -> Iterator[Place]:
    place = Place(tmp_path / "node", kafka_broker)
    yield place
    if place.ours.process is not None:
        place.ours.kill()


def described(client: RawClient) -> dict[str, Any]:
    answer = to_dict(client.ask(StreamsGroupDescribeRequest(group_ids=[GROUP]), 0), 0)
    (group,) = answer["groups"]
    group["members"].sort(key=lambda member: member["memberId"])
    del group[
        "topology"
    ]  # described with numbers of partitions, but by Kafka after a start only once it has written a record
    assert isinstance(group, dict)
    return group


def continue_with(place: Place, members: list[StreamsMember], before: dict[str, Any]) -> None:
    """Check that every member keeps its epoch and tasks, once the coordinator has loaded its log."""
    with RawClient(place.bootstrap) as client:
        for member in members:
            deadline = time.monotonic() + PATIENCE_S
            epoch = member.epoch
            while (answer := member.beat(client)).error_code != ErrorCode.NONE:
                assert time.monotonic() < deadline, answer
                time.sleep(0.05)
            assert (member.epoch, answer.active_tasks, answer.status) == (epoch, None, [])
        assert described(client) == before


def test_streams_members_keep_epochs_and_tasks_when_the_broker_is_replaced(place: Place) -> None:
    place.ours.start()
    create_topic(place.bootstrap, "lines", 2)
    subtopologies = word_count(GROUP, "lines")
    members = [StreamsMember(GROUP, name, subtopologies) for name in ("m1", "m2")]
    with RawClient(place.bootstrap) as client:
        reconcile(client, members, tasks=4)
        before = described(client)
    assert before["groupState"] == "Stable"
    place.ours.kill()

    place.kafkas.start()
    continue_with(place, members, before)
    members.append(StreamsMember(GROUP, "m3", subtopologies))
    with RawClient(place.bootstrap) as client:
        reconcile(client, members, tasks=4)
        before = described(client)
    place.kafkas.stop()

    place.ours.start()
    continue_with(place, members, before)
    with RawClient(place.bootstrap) as client:
        members.pop(0).leave(client)
        reconcile(client, members, tasks=4)
        before = described(client)
    assert place.ours.stop() == 0

    place.kafkas.start()
    continue_with(place, members, before)
