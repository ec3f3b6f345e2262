"""`tailrace groups` with a real cluster, of Apache Kafka and of Tailrace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command import Ran, tailrace
from tests.support.confluent import create_topic, produce
from tests.support.group_watch import GroupWatch

COUNT = 20


class Groups:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: object) -> Ran:
        return tailrace("groups", *arguments, "--bootstrap", self.bootstrap)

    def reported(self, *arguments: object) -> Any:
        ran = self(*arguments, "--json")
        assert (ran.status, ran.err) == (0, "")
        return json.loads(ran.out)

    def offsets(self, group: str) -> dict[int, tuple[int, int]]:
        (described,) = self.reported("describe", group)["groups"]
        return {one["partition"]: (one["committed"], one["lag"]) for one in described["partitions"]}


@pytest.fixture
def groups(bootstrap: str, topic: str) -> Groups:
    create_topic(bootstrap, topic, 2)
    for partition in (0, 1):
        produce(bootstrap, topic, partition, [str(number).encode() for number in range(COUNT)])
    return Groups(bootstrap)


def test_groups_are_reset_described_and_deleted(groups: Groups, topic: str) -> None:
    name = f"group of {topic}"
    plan = groups("reset", name, "--topic", topic, "--to-offset", 7)
    assert "nothing was changed" in plan.out
    assert groups("describe", name).status == 2
    moved = groups.reported("reset", name, "--topic", topic, "--to-offset", 7, "--execute")
    assert [(one["partition"], one["from"], one["to"]) for one in moved["offsets"]] == [(0, None, 7), (1, None, 7)]
    assert groups.offsets(name) == {0: (7, COUNT - 7), 1: (7, COUNT - 7)}
    groups.reported("reset", name, "--topic", f"{topic}:1", "--shift-by", "-3", "--execute")
    assert groups.offsets(name) == {0: (7, 13), 1: (4, 16)}
    (lag,) = groups.reported("lag", name)["lags"]
    assert (lag["topic"], lag["partitions"], lag["lag"], lag["maxLag"]) == (topic, 2, 29, 16)
    assert groups("lag", name, "--max", 15).status == 1
    assert groups("lag", name, "--max", 16).status == 0
    groups.reported("reset", name, "--to-latest", "--execute")
    assert groups.offsets(name) == {0: (20, 0), 1: (20, 0)}
    for aim, expected in (
        (["--to-earliest"], 0),
        (["--to-current"], 20),
        (["--to-datetime", "2020-01-01T00:00:00Z"], 0),
        (["--by-duration", "PT0S"], 20),
        (["--by-duration", "P1D"], 0),
        (["--to-offset", "99"], 20),
    ):
        planned = groups.reported("reset", name, *aim)
        assert {one["to"] for one in planned["offsets"]} == {expected}, aim
    listed = {one["group"]: one for one in groups.reported("list", "--state", "empty")["groups"]}
    assert listed[name]["state"] == "Empty"
    assert groups("delete", name).out == f"{name}: deleted\n"
    assert groups("delete", name).status == 2
    assert groups("delete", name, "--if-exists").status == 0


def test_a_group_with_members_is_described_and_not_reset(groups: Groups, topic: str) -> None:
    name = f"group of {topic}"
    watch = GroupWatch(groups.bootstrap, name, topic, session_ms=30_000)
    try:
        member = watch.start("librdkafka")
        watch.wait_until(lambda: len(member.of("committed")) == 2 * COUNT)
        (described,) = groups.reported("describe", name)["groups"]
        assert (described["state"], described["type"], described["protocol"]) == ("Stable", "classic", "range")
        (known,) = described["members"]
        assert known["clientId"] == "rdkafka"
        assert [one["partition"] for one in known["partitions"]] == [0, 1]
        assert {one["memberId"] for one in described["partitions"]} == {known["memberId"]}
        text = groups("describe", name).out
        assert text.startswith(f"{name}  ·  classic  ·  Stable  ·  1 member  ·  range\n")
        refused = groups("reset", name, "--to-earliest", "--execute")
        assert refused.status == 1
        assert "stop them first" in refused.err
        assert groups("delete", name).status == 1
        member.leave()
        assert groups.offsets(name) == {0: (COUNT, 0), 1: (COUNT, 0)}
    finally:
        watch.end()


def test_impossible_group_commands_are_refused(groups: Groups, topic: str) -> None:
    assert groups("describe", "nobody").status == 2
    assert "no committed offsets" in groups("reset", "nobody", "--to-earliest").err
    assert "has no partition 7" in groups("reset", "g", "--topic", f"{topic}:7", "--to-earliest").err
    assert "no committed offset to shift from" in groups("reset", "g", "--topic", topic, "--shift-by", "1").err
    assert groups("reset", "g", "--topic", topic).status == 2
    assert "is not a duration" in groups("reset", "g", "--by-duration", "2 hours").err
