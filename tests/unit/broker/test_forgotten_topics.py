"""The committed offsets of a deleted topic are deleted, of some groups at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.coordination.partition_writer import PartitionWriter
from tailrace.coordinator.offsets import forgotten_topics
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages as m
from tests.support.memory_node import Client, start

GROUPS = [f"group-{number}" for number in range(30)]


class Commits:
    """A broker with a topic, and groups that have committed offsets of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, partitions: int = 2) -> None:
        monkeypatch.setattr(forgotten_topics, "GROUPS_AT_ONCE", 10)
        monkeypatch.setattr(forgotten_topics, "RECORDS_AT_ONCE", 20)
        self.broker = start(static={"offsets.topic.num.partitions": "1"})
        self.client = Client(self.broker)
        self.partitions = range(partitions)
        self.create()
        self.client.ask(m.FindCoordinatorRequest(key="group"), 2)
        self.tick()
        for group in GROUPS:
            self.commit(group, 5)

    def create(self) -> None:
        topic = m.CreateTopicsRequest.CreatableTopic(
            name="topic", num_partitions=len(self.partitions), replication_factor=1
        )
        self.client.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 5)

    def delete(self) -> None:
        self.client.ask(m.DeleteTopicsRequest(topic_names=["topic"], timeout_ms=1_000), 4)

    def commit(self, group: str, offset: int) -> None:
        request = m.OffsetCommitRequest
        topic = request.OffsetCommitRequestTopic(name="topic")
        topic.partitions = [
            request.OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            for number in self.partitions
        ]
        response = self.client.ask(request(group_id=group, topics=[topic]), 7)
        assert not any(one.error_code for one in response.topics[0].partitions)

    def fetched(self, group: str) -> dict[int, int]:
        response = self.client.ask(m.OffsetFetchRequest(group_id=group, topics=None), 5)
        return {one.partition_index: one.committed_offset for topic in response.topics for one in topic.partitions}

    def stored(self) -> int:
        """Return the number of offsets in memory."""
        offsets = self.broker.services.groups.runtime.shard(0).offsets
        return sum(offsets.get(group, "topic", number) is not None for group in GROUPS for number in self.partitions)

    def tick(self, ms: int = 1) -> None:
        self.client.now_ms += ms
        self.broker.tick(self.client.now_ms)


def test_the_offsets_of_a_deleted_topic_are_deleted_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits(monkeypatch)
    commits.delete()
    stored = []
    for _ in range(5):
        assert commits.fetched(GROUPS[-1]) == {}
        stored.append(commits.stored())
        commits.tick()
    assert stored == [60, 40, 20, 0, 0]


def test_the_offsets_of_one_group_are_deleted_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits(monkeypatch, partitions=50)
    commits.delete()
    commits.tick()
    assert commits.stored() == 1_480
    for _ in range(120):
        commits.tick()
    assert commits.stored() == 0


def test_a_commit_for_the_next_topic_of_that_name_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits(monkeypatch)
    commits.delete()
    commits.create()
    commits.commit(GROUPS[-1], 9)
    for _ in range(6):
        assert commits.fetched(GROUPS[-1]) == {0: 9, 1: 9}
        assert commits.fetched(GROUPS[-2]) == {}
        commits.tick()
    assert commits.stored() == 2
    commits.delete()
    for _ in range(3):
        assert commits.fetched(GROUPS[-1]) == {}
        commits.tick()
    assert commits.stored() == 0


def test_a_slice_that_cannot_be_written_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits(monkeypatch)
    commits.delete()
    commits.tick()

    def refuse(*_: Any) -> int:
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")

    with monkeypatch.context() as refused:
        refused.setattr(PartitionWriter, "append", refuse)
        commits.tick()
    assert commits.stored() == 40
    for _ in range(4):
        commits.tick(1_000)
    assert commits.stored() == 0
