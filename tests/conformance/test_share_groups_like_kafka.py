"""Share groups (KIP-932) at Apache Kafka and at Tailrace: the same requests get the same responses and leave the same
records in `__consumer_offsets` and `__share_group_state`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from tests.conformance.test_groups_like_kafka import start_with_groups
from tests.support.group_twins import OFFSETS
from tests.support.kafka_broker import KafkaBroker
from tests.support.share_group_play import SETTINGS, TOPICS, ShareGroupPlay, ShareTwins

pytestmark = pytest.mark.kafka

STEPS = 100


@pytest.fixture
def twins(kafka_broker: Callable[..., KafkaBroker]) -> Any:
    kafka = start_with_groups(kafka_broker, SETTINGS)
    made = ShareTwins(kafka, SETTINGS)
    for name, count in sorted(TOPICS.items(), key=lambda one: -one[1]):
        made.create(name, count)
    made.learn_topics()
    yield made
    made.close()


def in_any_order(records: list[Any]) -> list[Any]:
    """Sort the records of shares that were computed together: Kafka writes them in the order of a hash map."""
    reported: list[Any] = []
    for name, group in groupby(records, key=lambda record: record[1]):
        together = list(group)
        reported += sorted(together, key=str) if name == "ShareGroupTargetAssignmentMemberKey" else together
    return reported


def play(twins: ShareTwins, seeds: range, steps: int) -> None:
    for seed in seeds:
        twins.steps.clear()
        twins.steps.append(f"seed {seed}")
        ShareGroupPlay(twins, seed).run(steps)
    assert compare(twins) > steps // 2


def compare(twins: ShareTwins) -> int:
    """Check that both have the same records, and return the number of group records."""
    log = twins.kafka.data / str(OFFSETS) / "00000000000000000000.log"
    kafkas, ours = twins.records(log.read_bytes())
    assert in_any_order(ours) == in_any_order(kafkas)
    kafkas_states, our_states = twins.states()
    assert our_states == kafkas_states
    return len(ours)


def test_the_same_share_group_requests_get_the_same_responses_and_leave_the_same_records(twins: ShareTwins) -> None:
    play(twins, range(1), STEPS)


@pytest.mark.slow
def test_many_more_share_group_requests_get_the_same_responses(twins: ShareTwins) -> None:
    play(twins, range(100, 125), 2 * STEPS)


@pytest.mark.slow
def test_responses_are_the_same_when_topics_grow_or_are_deleted_and_members_time_out(twins: ShareTwins) -> None:
    play = ShareGroupPlay(twins, 0)
    for member in play.members[:3]:
        member.topics = ["orders", "returns"]
        play.beat(member)
    for member in play.members[:3]:
        play.beat(member)
    twins.grow("orders", 6)
    for _ in range(3):
        for member in play.members[:3]:
            play.beat(member)
    twins.delete("returns")
    for _ in range(2):
        for member in play.members[:3]:
            play.beat(member)
    twins.set_session_timeout(play.group, 1_000)
    play.beat(play.members[0])
    twins.wait_until_gone(play.group, play.members[0].member_id)
    compare(twins)
