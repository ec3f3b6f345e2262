"""ShareGroupPlay: random members of share groups and administrators at both twins.

Members join, leave and misbehave; administrators set and delete the groups' offsets. Topics have the same ids at both
sides, so that the simple assignor gives the same shares. Kafka initializes the state of partitions after its response;
the next step waits until its logs are as long as ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.coordinator.loading import decode_record
from tailrace.model.ids import TopicPartition
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitializeShareGroupStateRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetDeleteRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from tailrace.records.batch import split_batches
from tailrace.records.record import iter_records
from tests.support.group_twins import OFFSETS, GroupTwins
from tests.support.kafka_broker import KafkaBroker
from tests.support.memory_files import MemoryFiles
from tests.support.raw_client import RawClient

STATE = TopicPartition("__share_group_state", 0)
TOPICS = {"orders": 3, "payments": 1, "returns": 5}
PARTITIONS_MAX = {"orders": 6}  # of a topic that grows
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": "5",
    "group.share.session.timeout.ms": "600000",
    "group.share.min.session.timeout.ms": "1",
    "group.share.max.session.timeout.ms": "600000",
    "group.share.min.heartbeat.interval.ms": "1",
    "auto.create.topics.enable": "false",
}
PATIENCE_S = 60
_TIMES = ("createTimestamp", "writeTimestamp")


class ShareTwins(GroupTwins):
    """Twins whose topics have the same ids."""

    def __init__(self, kafka: KafkaBroker, settings: dict[str, str]) -> None:
        self._chosen: list[bytes] = []
        ids = count(1_000_000)
        self.ours: Broker = open_broker(
            MemoryFiles(),
            BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings),
            now_ms=int(time.time() * 1000),
            new_id=lambda: self._chosen.pop() if self._chosen else next(ids).to_bytes(16, "big"),
            next_int=lambda limit: 0,
        )
        super().__init__(kafka.bootstrap, self.ours)
        self.kafka = kafka
        self.topic_ids: dict[str, bytes] = {}
        self._buckets: set[int] = set()
        self._looking = RawClient(kafka.bootstrap)
        self.ask_both("admin", FindCoordinatorRequest(key="any"), 1)

    def create(self, name: str, partitions: int) -> None:
        """Create a topic at both sides, with an id for which the assignor has no choice.

        Kafka's assignor visits topics in the order of an immutable set, which differs from one start of a JVM to the
        next. The order matters only between partitions that share a bucket of a hash map, so the id is chosen such that
        none do.
        """
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        actor = self.actor("admin")
        while True:
            assert actor.kafka.ask(request, 5).topics[0].error_code == 0
            topic_id = self._wait(lambda: self._kafkas_topics().get(name))
            buckets = {slot_bucket(topic_id, number) for number in range(PARTITIONS_MAX.get(name, partitions))}
            if not buckets & self._buckets:
                break
            actor.kafka.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
            self._wait(lambda: name not in self._kafkas_topics())
        self._buckets |= buckets
        self.topic_ids[name] = topic_id
        self._chosen.append(self.topic_ids[name])
        self._send_to_ours(actor, request, 5)
        self._ours.take_replies()
        assert self.ours.services.controller.image.topics[name].id == self.topic_ids[name]
        self._wait(lambda: self._is_known(name, partitions))

    def _is_known(self, name: str, partitions: int) -> bool:
        """Return True if Kafka's coordinators know a topic. The coordinator of share groups' state learns it last."""
        topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
            topic_name=name, partitions=[partitions - 1]
        )
        group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="any", topics=[topic])
        kafka, _ = self.ask_both("admin", DescribeShareGroupOffsetsRequest(groups=[group]), 1)
        return any(one.topic_id != bytes(16) for one in kafka.groups[0].topics)

    def grow(self, name: str, partitions: int) -> None:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000)
        for answer in self.ask_both("admin", request, 2):
            assert answer.results[0].error_code == 0, answer
        self._wait(lambda: self._kafkas_partitions(name) == partitions)
        # If Kafka's share coordinator does not know a partition yet, it needs many seconds to respond: it retries five
        # times, each time after a longer pause.
        self._wait(lambda: self._is_known(name, partitions))

    def delete(self, name: str) -> None:
        self.ask_both("admin", DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
        self.wait_alike()

    def set_session_timeout(self, group_id: str, timeout_ms: int) -> None:
        """Set the session timeout of a group, effective from the next heartbeat on."""
        configs = [
            IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=str(value))
            for name, value in (
                ("share.session.timeout.ms", timeout_ms),
                ("share.heartbeat.interval.ms", timeout_ms // 2),
            )
        ]
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=32, resource_name=group_id, configs=configs
        )
        for answer in self.ask_both("admin", IncrementalAlterConfigsRequest(resources=[resource]), 1):
            assert answer.responses[0].error_code == 0, answer
        time.sleep(1)  # no response shows when the coordinator has applied it

    def wait_until_gone(self, group_id: str, member_id: str) -> None:
        """Wait until a silent member has been removed."""

        def is_gone() -> bool:
            self.ours.tick(int(time.time() * 1000))
            return member_id not in self.ours.services.groups.runtime.shard(0).shares.group(group_id).members

        self._wait(is_gone)
        self.wait_alike()

    def _kafkas_topics(self) -> dict[str, bytes]:
        topics = self._looking.ask(MetadataRequest(topics=None), 12).topics
        return {topic.name: bytes(topic.topic_id) for topic in topics if not topic.error_code}

    def _kafkas_partitions(self, name: str) -> int:
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
        return len(self._looking.ask(request, 9).topics[0].partitions)

    def wait_alike(self) -> None:
        """Wait until Kafka has written as many records as Tailrace."""
        for key in (OFFSETS, STATE):
            if key.topic not in self.ours.services.controller.image.topics:
                continue
            ours = self.ours.services.partitions.find(key).log.log_end_offset
            try:
                self._wait(lambda key=key, ours=ours: self._kafkas_end(key) >= ours)  # type: ignore[misc]
            except TimeoutError:
                raise AssertionError(self._story(self._last_records(key))) from None
            assert self._kafkas_end(key) == ours, self._story(self._last_records(key))

    def _last_records(self, key: TopicPartition) -> str:
        """Return the last records of both sides, one of which has written more."""
        log = (self.kafka.data / str(OFFSETS) / f"{0:020}.log").read_bytes()
        lines = [f"{key}: Kafka has {self._kafkas_end(key)} records"]
        for side, records in zip(("Kafka", "we   "), self.records(log), strict=True):
            lines += [f"  {side} {record[1:]}" for record in records[-8:]]
        return "\n".join(lines)

    def _kafkas_end(self, key: TopicPartition) -> int:
        partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=key.partition, timestamp=-1)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=key.topic, partitions=[partition])
        answer = self._looking.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 1)
        end: int = answer.topics[0].partitions[0].offset
        return end

    @staticmethod
    def _wait(condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(0.005)
        return found

    def states(self) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Return the records in `__share_group_state`, by share partition."""
        log = self.ours.services.partitions.find(STATE).log
        found = log.read(log.log_start_offset, 1 << 30).slice
        kafkas = self.kafka.data / str(STATE) / f"{0:020}.log"
        return _states(kafkas.read_bytes()), _states(b"" if found is None else found.read())

    def close(self) -> None:
        self._looking.close()
        super().close()


def slot_bucket(topic_id: bytes, partition: int) -> int:
    """Return the bucket of a partition in a Java HashMap with 16 buckets, the fewest that the assignor's maps have."""
    upper, lower = int.from_bytes(topic_id[:8], "big"), int.from_bytes(topic_id[8:], "big")
    mixed = upper ^ lower
    code = (31 * ((mixed >> 32) ^ mixed) + partition) & 0xFFFFFFFF
    return (code ^ (code >> 16)) & 15


def _states(data: bytes) -> dict[str, list[Any]]:
    reported: dict[str, list[Any]] = {}
    for batch in split_batches(data):
        for record in iter_records(batch):
            opened = decode_record("share", record)
            key = to_dict(opened.key, 0)
            value = None if opened.value is None else to_dict(opened.value, opened.version)
            if value is not None:
                value.update({name: value[name] > 0 for name in _TIMES if name in value})
            reported.setdefault(str(key), []).append((opened.key.SCHEMA.name, opened.version, value))
    return reported


class Member:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lives = 0
        self.epoch = 0
        self.topics: list[str] = []

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"


class ShareGroupPlay:
    def __init__(self, twins: ShareTwins, seed: int) -> None:
        self.twins = twins
        self.random = Random(seed)
        self.group = f"shares-{seed}"
        self.members = [Member(f"s{seed}-{number}") for number in range(6)]

    def run(self, steps: int) -> None:
        actions = [
            (self.join, 8), (self.heartbeat, 30), (self.subscribe, 4), (self.leave, 4), (self.misbehave, 4),
            (self.describe, 3), (self.offsets, 3), (self.alter, 3), (self.forget, 2), (self.admin, 2),
            (self.other_kind, 1), (self.state, 8),
        ]  # fmt: skip
        for _ in range(steps):
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(self.random.choice(self.members))
            self.twins.wait_alike()

    def step(self, name: str, request: Any, version: int) -> dict[str, Any]:
        answer: dict[str, Any] = self.twins.step(name, request, version)[name]
        return answer

    def _some_topics(self) -> list[str]:
        return self.random.choice(
            [
                ["orders"],
                ["payments"],
                ["orders", "payments"],
                ["orders", "returns"],
                ["returns", "missing"],
                ["missing"],
            ]
        )

    # Members

    def _beat(self, member: Member, *, full: bool, **changes: Any) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=member.member_id,
            member_epoch=member.epoch,
            subscribed_topic_names=list(member.topics) if full else None,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self.step(member.name, request, 1)
        if changes:
            return
        if answer["errorCode"] == 0:
            member.epoch = answer["memberEpoch"]
        elif answer["errorCode"] in (25, 110, 69):  # unknown member, fenced epoch, group gone
            member.epoch = 0

    def beat(self, member: Member) -> None:
        self._beat(member, full=member.epoch == 0)
        self.twins.wait_alike()

    def join(self, member: Member) -> None:
        if member.epoch == 0:
            member.lives += self.random.random() < 0.5
            member.topics = self._some_topics()
        self._beat(member, full=True)

    def heartbeat(self, member: Member) -> None:
        if member.epoch > 0:
            self._beat(member, full=self.random.random() < 0.3)

    def subscribe(self, member: Member) -> None:
        if member.epoch > 0:
            member.topics = self._some_topics()
            self._beat(member, full=True)

    def leave(self, member: Member) -> None:
        self._beat(member, full=False, member_epoch=-1)
        member.epoch = 0

    def misbehave(self, member: Member) -> None:
        kinds: list[dict[str, Any]] = [
            {"member_epoch": member.epoch + 1, "subscribed_topic_names": ["orders"]},
            {"member_epoch": max(member.epoch - 1, 1)},
            {"member_epoch": -2},
            {"member_id": ""},
            {"member_id": "x" * 37},
            {"member_id": "nobody", "member_epoch": 5},
            {"group_id": ""},
            {"group_id": " ", "member_epoch": 3},
            {"group_id": "no-such-group", "member_epoch": 3},
            {"rack_id": ""},
            {"member_epoch": 0, "subscribed_topic_names": None},
            {"member_epoch": 0, "subscribed_topic_names": []},
        ]
        self._beat(member, full=False, **self.random.choice(kinds))

    # Describe and list requests

    def describe(self, member: Member) -> None:
        self.step(member.name, ShareGroupDescribeRequest(group_ids=[self.group, "no-such-group"]), 1)

    def offsets(self, member: Member) -> None:
        group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(
            group_id=self.random.choice([self.group, self.group, "no-such-group"]), topics=None
        )
        if self.random.random() < 0.5:
            group.topics = [
                DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
                    topic_name=name, partitions=list(range(count))
                )
                for name, count in {**TOPICS, "missing": 1}.items()
            ]
        self.step(member.name, DescribeShareGroupOffsetsRequest(groups=[group]), self.random.choice([0, 1]))

    # Administrators

    def alter(self, member: Member) -> None:
        topics = [
            AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
                        partition_index=number, start_offset=self.random.randrange(5)
                    )
                    for number in range(self.random.randrange(1, 4))
                ],
            )
            for name in self.random.sample([*TOPICS, "missing"], 2)
        ]
        self.step(member.name, AlterShareGroupOffsetsRequest(group_id=self.group, topics=topics), 0)

    def forget(self, member: Member) -> None:
        topics = [
            DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=name)
            for name in self.random.sample([*TOPICS, "missing"], 2)
        ]
        self.step(member.name, DeleteShareGroupOffsetsRequest(group_id=self.group, topics=topics), 0)

    def admin(self, member: Member) -> None:
        if self.random.random() < 0.5:
            self.step(member.name, ListGroupsRequest(types_filter=["share"]), 5)
        else:
            self.step(member.name, DeleteGroupsRequest(groups_names=[self.group]), 2)

    def other_kind(self, member: Member) -> None:
        """Send a request for groups of another kind."""
        requests = [
            (OffsetDeleteRequest(group_id=self.group), 0),
            (DescribeGroupsRequest(groups=[self.group]), 6),
            (ConsumerGroupHeartbeatRequest(group_id=self.group, member_id="m", member_epoch=3), 1),
        ]
        self.step(member.name, *self.random.choice(requests))

    # The share coordinator

    def state(self, member: Member) -> None:
        name = self.random.choice(list(TOPICS))
        topic_id = self.twins.topic_ids[name]
        number = self.random.choice([*range(TOPICS[name]), TOPICS[name], -1])
        kind = self.random.choice(["initialize", "read", "write", "write", "write", "summary", "delete"])
        epochs = [-1, 0, 1, 2, 3, 50]
        if kind == "initialize":
            self._ask_state(
                InitializeShareGroupStateRequest,
                InitializeShareGroupStateRequest.InitializeStateData,
                topic_id,
                InitializeShareGroupStateRequest.PartitionData(
                    partition=number,
                    state_epoch=self.random.choice(epochs),
                    start_offset=self.random.choice([-1, 0, 7]),
                ),
                member,
            )
        elif kind == "write":
            self._write(member, topic_id, number, self.random.choice(epochs), self.random.choice([-1, 0, 1]))
        elif kind == "read":
            self._ask_state(
                ReadShareGroupStateRequest,
                ReadShareGroupStateRequest.ReadStateData,
                topic_id,
                ReadShareGroupStateRequest.PartitionData(partition=number, leader_epoch=self.random.choice([-1, 0, 1])),
                member,
            )
        elif kind == "summary":
            self._ask_state(
                ReadShareGroupStateSummaryRequest,
                ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
                topic_id,
                ReadShareGroupStateSummaryRequest.PartitionData(partition=number, leader_epoch=-1),
                member,
            )
        elif self.random.random() < 0.3:
            self._ask_state(
                DeleteShareGroupStateRequest,
                DeleteShareGroupStateRequest.DeleteStateData,
                topic_id,
                DeleteShareGroupStateRequest.PartitionData(partition=number),
                member,
            )

    def _write(self, member: Member, topic_id: bytes, number: int, state_epoch: int, leader_epoch: int) -> None:
        batches = []
        first = self.random.randrange(10)
        for _ in range(self.random.randrange(3)):
            last = first + self.random.randrange(4)
            batches.append(
                WriteShareGroupStateRequest.StateBatch(
                    first_offset=first,
                    last_offset=last,
                    delivery_state=self.random.choice([0, 2, 4]),
                    delivery_count=self.random.randrange(1, 4),
                )
            )
            first = last + self.random.randrange(1, 3)
        self._ask_state(
            WriteShareGroupStateRequest,
            WriteShareGroupStateRequest.WriteStateData,
            topic_id,
            WriteShareGroupStateRequest.PartitionData(
                partition=number,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=self.random.choice([-1, 2, 5]),
                delivery_complete_count=self.random.randrange(3),
                state_batches=batches,
            ),
            member,
        )

    def _ask_state(self, request: Any, topic: Any, topic_id: bytes, partition: Any, member: Member) -> None:
        if STATE.topic not in self.twins.ours.services.controller.image.topics:
            return  # Kafka responds with NOT_COORDINATOR as long as the topic does not exist
        version = 1 if request in (WriteShareGroupStateRequest, ReadShareGroupStateSummaryRequest) else 0
        asked = topic(topic_id=topic_id, partitions=[partition])
        self.step(member.name, request(group_id=self.group, topics=[asked]), version)
