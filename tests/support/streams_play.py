"""StreamsPlay: random members of a streams group at both twins. They join, get tasks, commit, leave and misbehave.

Each play is an application with its own topics, which the brokers create. Kafka creates them after its response, and
its coordinator applies new topics and configs some time later. A probe shows when it has: a group at Kafka alone, which
is removed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import monotonic
from typing import Any

from tailrace.protocol.messages import (
    DeleteGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.support.group_play import TOPICS
from tests.support.group_twins import GroupTwins
from tests.support.raw_client import RawClient

REBALANCE_MS = 600_000
PATIENCE_S = 30.0
PROBE = "probe"
HEARTBEATS_MS = range(5_000, 15_001)
GROUP = 32  # resource type of a group's configs
MISSING_INTERNAL_TOPICS = 3
KINDS = ("activeTasks", "standbyTasks", "warmupTasks")
FENCED = (25, 110, 69)  # unknown member, fenced epoch, group gone

_Beat = StreamsGroupHeartbeatRequest


def _info(name: str, partitions: int = 0, **configs: str) -> _Beat.TopicInfo:
    pairs = [_Beat.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return _Beat.TopicInfo(name=name, partitions=partitions, topic_configs=pairs)


def topologies(group: str) -> list[list[_Beat.Subtopology]]:
    """Return several kinds of applications; the last ones do not fit the topics."""
    counted = [
        _Beat.Subtopology(
            subtopology_id="0", source_topics=["orders"], repartition_sink_topics=[f"{group}-words-repartition"]
        ),
        _Beat.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[_info(f"{group}-words-repartition", cleanup_policy="delete")],
            state_changelog_topics=[_info(f"{group}-counts-changelog", cleanup_policy="compact")],
        ),
    ]
    wide = [
        _Beat.Subtopology(
            subtopology_id="a",
            source_topics=["payments"],
            repartition_sink_topics=[f"{group}-by-customer"],
            state_changelog_topics=[_info(f"{group}-seen"), _info(f"{group}-late", retention_ms="60000")],
        ),
        _Beat.Subtopology(
            subtopology_id="b",
            source_topics=["orders"],
            repartition_source_topics=[_info(f"{group}-by-customer", 5)],
            state_changelog_topics=[_info(f"{group}-joined")],
        ),
        _Beat.Subtopology(subtopology_id="c", source_topics=["payments"]),
    ]
    together = [
        _Beat.Subtopology(subtopology_id="0", source_topics=["payments"], repartition_sink_topics=[f"{group}-again"]),
        _Beat.Subtopology(
            subtopology_id="1",
            source_topics=["orders"],
            repartition_source_topics=[_info(f"{group}-again")],
            state_changelog_topics=[_info(f"{group}-store")],
            copartition_groups=[_Beat.CopartitionGroup(source_topics=[0], repartition_source_topics=[0])],
        ),
    ]
    apart = [
        _Beat.Subtopology(
            subtopology_id="0",
            source_topics=["orders", "payments"],
            copartition_groups=[_Beat.CopartitionGroup(source_topics=[0, 1])],
        )
    ]
    missing = [_Beat.Subtopology(subtopology_id="0", source_topics=["orders", "missing"])]
    return [counted, wide, together, counted, wide, apart, missing]


class KafkaProbe:
    """A group at Kafka that shows which topics and configs its coordinator knows."""

    def __init__(self, kafka: RawClient) -> None:
        self._kafka = kafka
        self._beats = 0

    def wait_for_topics(self, subtopologies: list[_Beat.Subtopology]) -> None:
        """Wait until the coordinator knows all topics of an application."""
        self._wait(
            subtopologies, lambda answer: all(one.status_code != MISSING_INTERNAL_TOPICS for one in answer.status)
        )

    def wait_for_configs(self) -> None:
        """Wait until the coordinator knows the configs that were set so far."""
        self._beats += 1
        interval_ms = HEARTBEATS_MS[self._beats]
        change = IncrementalAlterConfigsRequest.AlterableConfig(
            name="streams.heartbeat.interval.ms", value=str(interval_ms)
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP, resource_name=PROBE, configs=[change]
        )
        assert self._kafka.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
        simple = [_Beat.Subtopology(subtopology_id="0", source_topics=["orders"])]
        self._wait(simple, lambda answer: answer.heartbeat_interval_ms == interval_ms)

    def _wait(self, subtopologies: list[_Beat.Subtopology], is_there: Callable[[Any], bool]) -> None:
        joining = _Beat(
            group_id=PROBE,
            member_id="m",
            rebalance_timeout_ms=REBALANCE_MS,
            process_id="p",
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            topology=_Beat.Topology(epoch=0, subtopologies=subtopologies),
        )
        deadline = monotonic() + PATIENCE_S
        while not is_there(answer := self._kafka.ask(joining, 0)):
            assert answer.error_code == 0, answer
            assert monotonic() < deadline, f"Kafka's coordinator did not get there in time: {answer}"
        assert self._kafka.ask(_Beat(group_id=PROBE, member_id="m", member_epoch=-1), 0).error_code == 0
        assert self._kafka.ask(DeleteGroupsRequest(groups_names=[PROBE]), 2).results[0].error_code == 0


class Member:
    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.lives = 0
        self.process = f"process-{number % 4}"
        self.endpoint = _Beat.Endpoint(host=f"host-{number}", port=9_000 + number) if number % 3 == 0 else None
        self.tags = [_Beat.KeyValue(key="zone", value=f"z{number}"), _Beat.KeyValue(key="cluster", value="c")]
        self.epoch = 0
        self.endpoint_epoch = -1
        self.owned: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"

    def forget(self) -> None:
        self.epoch = 0
        self.endpoint_epoch = -1
        self.owned = {kind: {} for kind in KINDS}


class StreamsPlay:
    def __init__(self, twins: GroupTwins, seed: int, topic_ids: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
        self.twins = twins
        self.probe = KafkaProbe(twins.actor("admin").kafka)
        self.random = Random(seed)
        self.group = f"streams-{seed}"
        self.topic_ids = topic_ids
        kinds = topologies(self.group)
        self.subtopologies = kinds[seed % len(kinds)]
        self.is_fit = seed % len(kinds) < len(kinds) - 2
        self.members = [Member(f"s{seed}-{number}", number) for number in range(7)]

    def run(self, steps: int) -> None:
        actions = [
            (self.join, 8), (self.heartbeat, 34), (self.partial, 6), (self.leave, 3), (self.misbehave, 5),
            (self.commit, 5), (self.fetch, 3), (self.describe, 4), (self.admin, 2), (self.configure, 1),
        ]  # fmt: skip
        for _ in range(steps):
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(self.random.choice(self.members))

    def _step(self, member: Member, request: Any, version: int) -> dict[str, Any]:
        answer: dict[str, Any] = self.twins.step(member.name, request, version)[member.name]
        return answer

    def _beat(self, member: Member, *, full: bool, **changes: Any) -> dict[str, Any]:
        request = _Beat(
            group_id=self.group,
            member_id=member.member_id,
            member_epoch=member.epoch,
            endpoint_information_epoch=member.endpoint_epoch,
        )
        if full:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.process_id = member.process
            request.user_endpoint = member.endpoint if self.is_fit else None
            request.client_tags = member.tags
            for kind, name in zip(KINDS, ("active_tasks", "standby_tasks", "warmup_tasks"), strict=True):
                tasks = [_Beat.TaskIds(subtopology_id=key, partitions=of) for key, of in member.owned[kind].items()]
                setattr(request, name, tasks)
            if member.epoch == 0:
                request.topology = _Beat.Topology(epoch=0, subtopologies=self.subtopologies)
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self._step(member, request, 0)
        if not changes:
            self._learn(member, answer)
        if any(one["statusCode"] == MISSING_INTERNAL_TOPICS for one in answer["status"] or ()):
            self._wait_for_topics()
        return answer

    def _learn(self, member: Member, answer: dict[str, Any]) -> None:
        if answer["errorCode"] == 0:
            member.epoch = answer["memberEpoch"]
            member.endpoint_epoch = answer["endpointInformationEpoch"]
            for kind in KINDS:
                if answer[kind] is not None:
                    member.owned[kind] = {one["subtopologyId"]: one["partitions"] for one in answer[kind]}
        elif answer["errorCode"] in FENCED:
            member.forget()

    def _wait_for_topics(self) -> None:
        deadline = monotonic() + PATIENCE_S
        while True:
            kafkas, ours = self.twins.ask_both("admin", MetadataRequest(topics=None), 12)
            if {topic.name for topic in kafkas.topics} == {topic.name for topic in ours.topics}:
                break
            assert monotonic() < deadline, "Kafka did not create the topics that we created"
        self.probe.wait_for_topics(self.subtopologies)
        self.twins.learn_topics()

    # Members

    def join(self, member: Member) -> None:
        if member.epoch == 0 and self.random.random() < 0.5:
            member.lives += 1
        self._beat(member, full=True)

    def heartbeat(self, member: Member) -> None:
        if member.epoch > 0:
            self._beat(member, full=True)

    def partial(self, member: Member) -> None:
        if member.epoch > 0:
            self._beat(member, full=False)

    def leave(self, member: Member) -> None:
        self._beat(member, full=False, member_epoch=-1, shutdown_application=self.random.random() < 0.1)
        member.forget()

    def misbehave(self, member: Member) -> None:
        some = _Beat.Topology(epoch=0, subtopologies=self.subtopologies)
        regex = _Beat.Subtopology(subtopology_id="0", source_topics=["orders"], source_topic_regex=["o.*"])
        internal = _Beat.Subtopology(subtopology_id="0", source_topics=["__consumer_offsets"])
        unnamed = _Beat.Subtopology(subtopology_id="0", source_topics=["no such name"])
        numbered = _Beat.Subtopology(
            subtopology_id="0", source_topics=["orders"], state_changelog_topics=[_info("changelog", 3)]
        )
        lost = _Beat.Subtopology(subtopology_id="0", repartition_source_topics=[_info("never-written")])
        circle = [
            _Beat.Subtopology(subtopology_id="0", repartition_source_topics=[_info("x")], repartition_sink_topics=["x"])
        ]
        odd = _Beat.TaskIds(subtopology_id="nowhere", partitions=[0])
        high = _Beat.TaskIds(subtopology_id=self.subtopologies[0].subtopology_id, partitions=[99])
        new = {"group_id": "never-made", "member_epoch": 0, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        kinds: list[dict[str, Any]] = [
            {"member_epoch": member.epoch + 1, "topology": None},
            {"member_epoch": max(member.epoch - 1, 1), "topology": None},
            {"member_epoch": -2},
            {"member_epoch": -3},
            {"member_id": ""},
            {"member_id": "nobody", "member_epoch": 5, "topology": None},
            {"member_id": "nobody", "member_epoch": -1, "topology": None},
            {"group_id": ""},
            {"group_id": "no-such-group", "member_epoch": 3, "topology": None},
            {"group_id": "no-such-group", "member_epoch": -1, "topology": None},
            {"instance_id": "one"},
            {"rack_id": " "},
            {"member_epoch": 4, "topology": some},
            {"task_offsets": []},
            {"task_end_offsets": []},
            {"warmup_tasks": [odd]},
            {"active_tasks": [odd]},
            {"standby_tasks": [high]},
            {"standby_tasks": None},
            {**new, "rebalance_timeout_ms": -1},
            {**new, "active_tasks": None},
            {**new, "topology": None},
            {**new, "topology": _Beat.Topology(epoch=0, subtopologies=[regex])},
            {**new, "topology": _Beat.Topology(epoch=0, subtopologies=[internal])},
            {**new, "topology": _Beat.Topology(epoch=0, subtopologies=[unnamed])},
            {**new, "topology": _Beat.Topology(epoch=0, subtopologies=[numbered])},
            {**new, "topology": _Beat.Topology(epoch=0, subtopologies=[lost])},
            {**new, "topology": _Beat.Topology(epoch=0, subtopologies=circle)},
            {**new, "topology": _Beat.Topology(epoch=-1, subtopologies=self.subtopologies)},
            {**new, "group_id": self.group, "topology": _Beat.Topology(epoch=1, subtopologies=self.subtopologies)},
            {"shutdown_application": True},
        ]
        self._beat(member, full=True, **self.random.choice(kinds))

    # Offsets

    def commit(self, member: Member) -> None:
        epoch = self.random.choice([member.epoch, member.epoch, member.epoch - 1, -1, 99])
        topic = self.random.choice(list(TOPICS))
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=member.member_id,
            generation_id_or_member_epoch=epoch,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=self.random.randrange(TOPICS[topic]),
                            committed_offset=self.random.randrange(1_000),
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )
        self._step(member, request, self.random.choice([8, 9]))

    def fetch(self, member: Member) -> None:
        epoch = self.random.choice([member.epoch, member.epoch, -1, 99])
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self.group,
            member_id=member.member_id if epoch != -1 else None,
            member_epoch=epoch,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=list(range(count)))
                for name, count in TOPICS.items()
            ],
        )
        self._step(member, OffsetFetchRequest(groups=[group]), 9)

    # Describe requests, and changes by administrators

    def describe(self, member: Member) -> None:
        self._step(member, StreamsGroupDescribeRequest(group_ids=[self.group, "no-such-group"]), 0)

    def admin(self, member: Member) -> None:
        kind = self.random.randrange(4)
        if kind == 0:
            self._step(member, ListGroupsRequest(types_filter=self.random.choice([[], ["streams"], ["classic"]])), 5)
        elif kind == 1:
            states = self.random.choice([["Stable"], ["Reconciling", "Assigning"], ["Empty"], ["not_ready"]])
            self._step(member, ListGroupsRequest(states_filter=states), 5)
        elif kind == 2:
            topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=self.random.choice(list(TOPICS)),
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)],
            )
            self._step(member, OffsetDeleteRequest(group_id=self.group, topics=[topic]), 0)
        else:
            self._step(member, DeleteGroupsRequest(groups_names=[self.group]), 2)

    def configure(self, member: Member) -> None:
        """Set the number of standby replicas of the group's tasks."""
        change = IncrementalAlterConfigsRequest.AlterableConfig(
            name="streams.num.standby.replicas", value=str(self.random.randrange(4))
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP, resource_name=self.group, configs=[change]
        )
        self._step(member, IncrementalAlterConfigsRequest(resources=[resource]), 1)
        self.probe.wait_for_configs()
