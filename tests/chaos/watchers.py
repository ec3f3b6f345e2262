"""Watchers: consumers that read everything all the time, and note what they saw at which offset.

A `Reader` must never see an offset twice, or get an error such as OFFSET_OUT_OF_RANGE where it reads. `Watermarks` asks
leaders for high watermarks and last stable offsets. These never move back, provided that older metadata is ignored.
"""

from __future__ import annotations

import contextlib
import time
from array import array
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from tailrace.protocol.messages import ListOffsetsRequest, MetadataRequest
from tests.chaos.findings import Findings, Worker
from tests.chaos.producers import PATIENT
from tests.support.raw_client import RawClient

Key = tuple[str, int]
SILENCE_S = 20.0
ISOLATIONS = ("read_uncommitted", "read_committed")
EXPECTED_ERRORS = frozenset(
    {"_ALL_BROKERS_DOWN", "_TRANSPORT", "_TIMED_OUT", "_RESOLVE", "_MAX_POLL_EXCEEDED", "LEADER_NOT_AVAILABLE"}
    | {"NOT_LEADER_FOR_PARTITION", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "_PARTITION_EOF", "NOT_COORDINATOR"}
)


class Seen:
    """Records that were read of a partition: offsets in order, and a fingerprint of each value."""

    __slots__ = ("fingerprints", "offsets")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.fingerprints = array("q")

    def add(self, offset: int, value: bytes) -> None:
        self.offsets.append(offset)
        self.fingerprints.append(hash(value))


class Reader:
    def __init__(self, bootstrap: str, topics: Mapping[str, int], isolation: str, findings: Findings) -> None:
        self.isolation = isolation
        self.seen: dict[Key, Seen] = defaultdict(Seen)
        self.count = 0
        self.renewals = 0
        self._bootstrap = bootstrap
        self._keys = [(topic, one) for topic, count in topics.items() for one in range(count)]
        self._findings = findings
        self._received_s = time.monotonic()
        self._consumer = self._new_consumer()
        self.worker = Worker(f"reader {isolation}", findings, self._step)

    def _new_consumer(self) -> Consumer:
        made = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": f"reader-{self.isolation}",
                "group.id": f"reader-{self.isolation}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": self.isolation,
                **PATIENT,
            }
        )
        ends = {key: self.seen[key].offsets[-1] + 1 if self.seen[key].offsets else 0 for key in self._keys}
        made.assign([TopicPartition(topic, one, offset) for (topic, one), offset in ends.items()])
        return made

    def _renew(self) -> None:
        """Create a new consumer: librdkafka forgets all brokers when a response says that none is alive, and does not
        recover.
        """
        self._consumer.close()
        self._consumer = self._new_consumer()
        self._received_s = time.monotonic()
        self.renewals += 1

    def _step(self) -> None:
        messages = self._consumer.consume(500, 0.5)
        if messages:
            self._received_s = time.monotonic()
        elif time.monotonic() - self._received_s > SILENCE_S:
            self._renew()
        for message in messages:
            error = message.error()
            if error is not None:
                if error.name() not in EXPECTED_ERRORS:
                    where = f"{message.topic()}-{message.partition()} at {message.offset()}"
                    self._findings.add(f"the {self.isolation} reader got {error.name()} for {where}: {error}")
                continue
            key, offset = (message.topic(), message.partition()), message.offset()
            seen = self.seen[key]
            if seen.offsets and offset <= seen.offsets[-1]:
                self._findings.add(f"the {self.isolation} reader gets {key} {offset} after {seen.offsets[-1]}")
            seen.add(offset, message.value())
            self.count += 1

    def close(self) -> None:
        self._consumer.close()


class Leader(NamedTuple):
    epoch: int
    node: int


class Watermarks:
    def __init__(self, bootstrap: str, topics: Mapping[str, int], findings: Findings) -> None:
        self._places = bootstrap.split(",")
        self._topics = topics
        self._findings = findings
        self._leaders: dict[Key, Leader] = {}
        self._nodes: dict[int, str] = {}
        self._clients: dict[str, RawClient] = {}
        self._turn = 0
        self.marks: dict[tuple[str, Key], int] = defaultdict(int)
        self.answers = 0
        self.worker = Worker("watermarks", findings, self._step)

    def _step(self) -> None:
        self._turn += 1
        try:
            self._learn(self._places[self._turn % len(self._places)])
        except (OSError, AssertionError):
            self._clients.clear()
        for node in {leader.node for leader in self._leaders.values()}:
            for level, isolation in enumerate(ISOLATIONS):
                try:
                    self._ask(node, level, isolation)
                except OSError:
                    self._drop(self._nodes.get(node, ""))
        self.worker.is_ending.wait(0.3)

    def _client(self, place: str) -> RawClient:
        if place not in self._clients:
            self._clients[place] = RawClient(place, client_id="watermarks", timeout_s=3)
        return self._clients[place]

    def _drop(self, place: str) -> None:
        client = self._clients.pop(place, None)
        if client is not None:
            with contextlib.suppress(OSError):
                client.close()

    def _learn(self, place: str) -> None:
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=one) for one in self._topics])
        try:
            answer = self._client(place).ask(request, 9)
        except OSError:
            self._drop(place)
            return
        self._nodes.update({one.node_id: f"{one.host}:{one.port}" for one in answer.brokers})
        for topic in answer.topics:
            for one in topic.partitions:
                key = (topic.name, one.partition_index)
                known = self._leaders.get(key)
                if one.leader_id >= 0 and (known is None or one.leader_epoch > known.epoch):
                    self._leaders[key] = Leader(one.leader_epoch, one.leader_id)

    def _ask(self, node: int, level: int, isolation: str) -> None:
        topics: dict[str, list[Any]] = defaultdict(list)
        for (topic, partition), leader in self._leaders.items():
            if leader.node == node:
                topics[topic].append(
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=leader.epoch, timestamp=-1
                    )
                )
        if not topics or node not in self._nodes:
            return
        asked = [ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=some) for name, some in topics.items()]
        began = time.monotonic()
        answer = self._client(self._nodes[node]).ask(
            ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=asked), 6
        )
        for topic in answer.topics:
            for one in topic.partitions:
                if not one.error_code:
                    self._note(isolation, (topic.name, one.partition_index), one.offset, node, began)

    def _note(self, isolation: str, key: Key, offset: int, node: int, began: float) -> None:
        before = self.marks[isolation, key]
        if offset < before:
            took = time.monotonic() - began
            self._findings.add(
                f"{key}: the {isolation} end moved back from {before} to {offset}, says {node} as leader of epoch "
                f"{self._leaders[key].epoch} ({took:.1f} s after it was asked)"
            )
        self.marks[isolation, key] = max(before, offset)
        self.answers += 1
