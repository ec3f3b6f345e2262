"""GroupTwins: the same requests of group members to Apache Kafka and to Tailrace, with responses and records compared.

Each actor has a connection to each side. A response may come at once, later, or together with others. Tailrace runs in
this process without delay, so its responses after a step are known, and Kafka must give the same ones. Each side makes
its own member ids; these become names: `a0#1` is the first id that actor a0 got.
"""

from __future__ import annotations

import json
import re
import select
import time
from itertools import groupby
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.loading import decode_record
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.protocol.json_form import base64_uuid_text, to_dict
from tailrace.protocol.message import VersionedMessage
from tailrace.protocol.messages import DescribeGroupsRequest, MetadataRequest
from tailrace.records.batch import split_batches
from tailrace.records.record import iter_records
from tests.support.memory_node import Client
from tests.support.raw_client import RawClient

OFFSETS = TopicPartition("__consumer_offsets", 0)
PATIENCE_S = 20
TAKEN_IN_S = 0.05
TIMER_S = 0.2  # Kafka needs a moment for timers that are due at once
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMES = frozenset({"currentStateTimestamp", "commitTimestamp", "expireTimestamp", "assignmentTimestamp"})


class Actor:
    def __init__(self, name: str, connection_id: int, kafka: RawClient) -> None:
        self.name = name
        self.connection_id = connection_id
        self.kafka = kafka
        self.context = ConnectionContext(connection_id)
        self.asked: tuple[int, int] | None = None  # API key and version of the unanswered request
        self.member_ids: tuple[str, str] = ("", "")  # at Kafka, at Tailrace
        self.given = 0


class GroupTwins:
    def __init__(self, bootstrap: str, ours: Broker) -> None:
        self._bootstrap = bootstrap
        self._ours = ours
        self._actors: dict[str, Actor] = {}
        self._names: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.steps: list[str] = []

    def actor(self, name: str) -> Actor:
        found = self._actors.get(name)
        if found is None:
            number = len(self._actors) + 1
            found = self._actors[name] = Actor(name, number, RawClient(self._bootstrap, client_id=name))
        return found

    def learn_topics(self) -> None:
        """Note the ids of topics, which differ between the sides."""
        for names, answer in zip(self._names, self.ask_both("admin", MetadataRequest(topics=None), 12), strict=True):
            names.update({base64_uuid_text(topic.topic_id): f"(id of {topic.name})" for topic in answer.topics})

    # Requests

    def ask_both(self, name: str, request: Any, version: int) -> tuple[Any, Any]:
        """Return the responses of both sides unchanged, for requests that are answered at once."""
        return self.ask_one(0, name, request, version), self.ask_one(1, name, request, version)

    def ask_one(self, side: int, name: str, request: Any, version: int) -> Any:
        """Return the response of Kafka (side 0) or of our broker (side 1), to a request that is answered at once."""
        actor = self.actor(name)
        if side == 0:
            return actor.kafka.ask(request, version)
        self._ours.tick(_now_ms())
        self._send_to_ours(actor, request, version)
        (reply,) = self._ours.take_replies()
        return Client.decode(reply, request.SCHEMA.api_key, version)

    def _send_to_ours(self, actor: Actor, request: Any, version: int) -> None:
        header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, actor.name))
        frame = memoryview(bytearray(header + request.encode(version)))
        self._ours.handle(frame, actor.context, _now_ms())

    def step(self, name: str, request: Any, version: int, ours: Any = None) -> dict[str, Any]:
        """Send an actor's request to both sides and compare all responses that follow, to any actor.

        `ours`: the request for our side, if ids make it different. Return the responses by actor, with names for ids.
        """
        actor = self.actor(name)
        assert actor.asked is None, f"{name} waits for an answer"
        self.steps.append(f"{name}: v{version} {self._reported(1, ours or request, version)}")
        actor.kafka.send(request, version)
        actor.asked = (request.SCHEMA.api_key, version)
        self._send_to_ours(actor, ours or request, version)
        answers = self.compare_responses()
        if actor.asked is not None:
            # Kafka does not confirm that it has read the request. Wait, so that a request on another connection does
            # not overtake it.
            time.sleep(TAKEN_IN_S)
            self.actor("admin").kafka.ask(DescribeGroupsRequest(groups=[request.group_id]), 0)
        return answers

    def compare_responses(self) -> dict[str, Any]:
        """Take the responses that our broker has sent by now; Kafka must send the same."""
        deadline_ms = self._ours.services.coordinators.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= _now_ms() + 1:
            time.sleep(TIMER_S)
            self._ours.tick(_now_ms())
        replies = {reply.connection_id: reply for reply in self._ours.take_replies()}
        pairs = [
            (actor, self._receive(actor), self._decode(actor, replies[actor.connection_id]))
            for actor in self._actors.values()
            if actor.connection_id in replies
        ]
        for actor, kafka, ours in pairs:
            self._note_member(actor, kafka, ours)
        answers = {}
        for actor, kafka, ours in pairs:
            assert actor.asked is not None
            version = actor.asked[1]
            answers[actor.name] = self._reported(1, ours, version)
            same = (self._reported(0, kafka, version), answers[actor.name])
            assert same[0] == same[1], self._story(f"{actor.name}\n  Kafka {same[0]}\n  we    {same[1]}")
            actor.asked = None
        return answers

    def check_quiet(self) -> None:
        """Check that Kafka has sent no response that our broker has not sent."""
        waiting = [actor for actor in self._actors.values() if actor.asked is not None]
        ready, _, _ = select.select([actor.kafka.socket for actor in waiting], [], [], 0)
        early = [actor.name for actor in waiting if actor.kafka.socket in ready]
        assert not early, self._story(f"Kafka has answered {early}, we have not")

    def _receive(self, actor: Actor) -> Any:
        assert actor.asked is not None
        ready, _, _ = select.select([actor.kafka.socket], [], [], PATIENCE_S)
        assert ready, self._story(f"we have answered {actor.name}, Kafka has not")
        return actor.kafka.receive(*actor.asked)

    def _decode(self, actor: Actor, reply: Reply) -> Any:
        assert actor.asked is not None
        return Client.decode(reply, *actor.asked)

    def _story(self, last: str) -> str:
        return "\n".join([*self.steps, last])

    def is_leader_of_many(self, group_id: str, name: str) -> bool:
        """Return True if an actor leads a group of more than two members, according to our broker."""
        group = self._ours.services.groups.runtime.shard(0).groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return False
        return len(group.members) > 2 and group.leader_id == self.actor(name).member_ids[1]

    # Names

    def _note_member(self, actor: Actor, kafka: Any, ours: Any) -> None:
        if not hasattr(ours, "skip_assignment") or ours.error_code not in (
            ErrorCode.NONE,
            ErrorCode.MEMBER_ID_REQUIRED,
        ):
            return
        if ours.member_id in self._names[1]:
            return
        actor.given += 1
        actor.member_ids = (kafka.member_id, ours.member_id)
        for names, member_id in zip(self._names, actor.member_ids, strict=True):
            names[member_id] = f"{actor.name}#{actor.given}"

    def _reported(self, side: int, message: Any, version: int) -> Any:
        return self._plain(side, to_dict(message, version))

    def _plain(self, side: int, value: Any) -> Any:
        names = self._names[side]
        if isinstance(value, dict):
            return {name: self._field(side, name, one) for name, one in value.items()}
        if isinstance(value, list):
            reported = [self._plain(side, one) for one in value]
            return sorted(reported, key=json.dumps) if reported and isinstance(reported[0], dict) else reported
        if not isinstance(value, str):
            return value
        return names.get(value) or _UUID.sub("(new)", value)  # an id that its owner has not received yet

    def _field(self, side: int, name: str, value: Any) -> Any:
        if name in _TIMES:
            return "(time)" if value != -1 else -1
        if name == "errorMessage":
            return "(text)" if value else None
        if name == "metadataHash":  # a hash over topic ids, which differ; it has its own test
            return "(hash)" if value else 0
        is_list = name in ("subscribedTopicNames", "partitions") and isinstance(value, list)
        if is_list and value and not isinstance(value[0], dict):
            return sorted(value)
        return self._plain(side, value)

    # Records

    def records(self, kafkas: bytes) -> tuple[list[Any], list[Any]]:
        """Return the records in `__consumer_offsets`, of Kafka (from the bytes of its log) and of ours."""
        log = self._ours.services.partitions.find(OFFSETS).log
        found = log.read(0, 1 << 30).slice
        return self._record_list(0, kafkas), self._record_list(1, b"" if found is None else found.read())

    def _record_list(self, side: int, data: bytes) -> list[Any]:
        reported = []
        for batch in split_batches(data):
            attributes = (batch.attributes, batch.producer_id, batch.producer_epoch, batch.base_sequence)
            for record in iter_records(batch):
                opened = decode_record("group", record)
                assert record.key == encode_key(opened.key)
                assert record.headers == ()
                value = None
                if opened.value is not None:
                    assert record.value == encode_value(opened.value, opened.version)
                    value = self._plain(side, to_dict(opened.value, opened.version))
                key = VersionedMessage(opened.key.SCHEMA.name, 0, opened.key)
                reported.append((attributes, key.name, to_dict(opened.key, 0), opened.version, value))
        # The order in which Kafka removes a group's offsets is that of its hash map.
        runs = (list(run) for _, run in groupby(reported, key=lambda one: (one[1], one[4] is None)))
        return [one for run in runs for one in (sorted(run, key=str) if run[0][4] is None else run)]

    def close(self) -> None:
        for actor in self._actors.values():
            actor.kafka.close()


def _now_ms() -> int:
    return int(time.time() * 1000)
