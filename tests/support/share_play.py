"""SharePlay: random members of a share group, at Apache Kafka and at Tailrace.

Members fetch, acknowledge, renew, leave, come back and misbehave. Every response must be the same at both sides, and so
must the persisted state at the end. Tailrace runs in this process, with the wall clock. Locks expire only while all
members pause: a step that would come too close to an expiry is replaced by a pause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.model.errors import ErrorCode
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitializeShareGroupStateRequest,
    MetadataRequest,
    ProduceRequest,
    ReadShareGroupStateRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from tailrace.records.batch import split_batches
from tailrace.records.builder import BatchBuilder
from tailrace.shares.state.persisted_state import SharePartitionKey, combine, state_batches
from tests.support.memory_node import Client
from tests.support.raw_client import RawClient

LOCK_MS = 3_000
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.partition.max.record.locks": "100",
    "auto.create.topics.enable": "false",
}
AFTER_RESPONSE_S = 0.15  # time for Kafka's work after a response, such as releasing the records of a closed session
KAFKA, OURS = 0, 1
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class Side:
    """One broker, with a connection for each member."""

    def __init__(self, bootstrap: str | None, broker: Broker | None) -> None:
        self._bootstrap = bootstrap
        self.broker = broker
        self._clients: dict[str, Any] = {}
        self._connections = 0
        self.topic_id = b""

    def ask(self, who: str, request: Any, version: int) -> Any:
        if self.broker is None:
            assert self._bootstrap is not None
            if who not in self._clients:
                self._clients[who] = RawClient(self._bootstrap, client_id=who)
            return self._clients[who].ask(request, version)
        if who not in self._clients:
            self._connections += 1
            self._clients[who] = ConnectionContext(self._connections)
        header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, who))
        self.broker.tick(now_ms())
        self.broker.handle(memoryview(bytearray(header + request.encode(version))), self._clients[who], now_ms())
        replies = self.broker.take_replies()
        while not replies:
            time.sleep(0.001)
            self.broker.tick(now_ms())
            replies = self.broker.take_replies()
        (reply,) = replies
        return Client.decode(reply, request.SCHEMA.api_key, version)

    def hang_up(self, who: str) -> None:
        client = self._clients.pop(who, None)
        if isinstance(client, RawClient):
            client.close()
        elif client is not None and self.broker is not None:
            self.broker.connection_closed(client.connection_id, now_ms())

    def close(self) -> None:
        for who in list(self._clients):
            self.hang_up(who)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Member:
    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        # by partition, offset ranges that the member acquired and may still hold
        self.held: dict[int, list[tuple[int, int]]] = {}


class SharePlay:
    def __init__(self, bootstrap: str, ours: Broker, seed: int, settings: dict[str, str] | None = None) -> None:
        # The order in which a session's partitions get their share of max_records is that of a Java hash map. So a
        # fetch of several partitions never asks for fewer records than there can be.
        self.partition_count = 1 + 2 * (seed % 2)
        self.limits = [1, 2, 3, 5, 8, 13, 40, 500] if self.partition_count == 1 else [500]
        self.random = Random(seed)
        self.group = f"group-{seed}"
        self.topic = f"topic-{seed}"
        self.sides = (Side(bootstrap, None), Side(None, ours))
        self.members = [Member(f"member-{seed}-{number}") for number in range(3)]
        # holds a session and nothing else, so that the group is never without one
        self.keeper = Member(f"keeper-{seed}")
        self.steps: list[str] = []
        self.ends = [0] * self.partition_count
        self.reached = [0] * self.partition_count  # end of the acquired records, by partition
        self._begun_s = 0.0
        self._prepare(settings or {})

    def _prepare(self, settings: dict[str, str]) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=self.topic, num_partitions=self.partition_count, replication_factor=1
        )
        for side in self.sides:
            made = side.ask("admin", CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics[0]
            assert made.error_code == 0
            wanted = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=self.topic)])
            _until(lambda side=side, wanted=wanted: side.ask("admin", wanted, 12).topics[0].error_code == 0)
            side.topic_id = bytes(side.ask("admin", wanted, 12).topics[0].topic_id)
        if settings:
            configs = [
                IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
                for name, value in settings.items()
            ]
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=32, resource_name=self.group, configs=configs
            )
            for side in self.sides:
                answer = side.ask("admin", IncrementalAlterConfigsRequest(resources=[resource]), 1)
                assert answer.responses[0].error_code == 0, answer.responses[0].error_message
        self._initialize_kafka()
        self._initialize_ours()
        if settings:
            time.sleep(0.5)  # Kafka applies the group's configuration some time later
        for index in range(self.partition_count):
            self.produce(index, [1])
        for side in self.sides:
            ready: set[int] = set()
            _until(lambda side=side, ready=ready: self._is_ready(side, ready))

    def _is_ready(self, side: Side, ready: set[int]) -> bool:
        """Return True if the state of all partitions is loaded: the keeper got the first record of each and
        accepts it.
        """
        answer = side.ask("keeper", self._fetch_request(side, self.keeper, max_wait_ms=500), 2)
        acks = {
            reported.partition_index: [(0, 0, [ACCEPT])]
            for topic in answer.responses
            for reported in topic.partitions
            if reported.acquired_records
        }
        if acks:
            done = side.ask("keeper", self._ack_request(side, self.keeper, acks, share_session_epoch=1), 2)
            assert not any(one.error_code for topic in done.responses for one in topic.partitions)
            ready.update(acks)
        return len(ready) == self.partition_count

    def _initialize_kafka(self) -> None:
        side = self.sides[KAFKA]
        partitions = [
            InitializeShareGroupStateRequest.PartitionData(partition=index, state_epoch=0, start_offset=0)
            for index in range(self.partition_count)
        ]
        topics = [InitializeShareGroupStateRequest.InitializeStateData(topic_id=side.topic_id, partitions=partitions)]
        request = InitializeShareGroupStateRequest(group_id=self.group, topics=topics)
        keys = [str(SharePartitionKey(self.group, side.topic_id, index)) for index in range(self.partition_count)]

        def is_done() -> bool:
            found = side.ask("admin", FindCoordinatorRequest(key_type=2, coordinator_keys=keys), 6)
            if any(one.error_code for one in found.coordinators):
                return False
            answer = side.ask("admin", request, 0)
            return not any(one.error_code for result in answer.results for one in result.partitions)

        _until(is_done)

    def _initialize_ours(self) -> None:
        broker = self.sides[OURS].broker
        assert broker is not None
        for index in range(self.partition_count):
            answers: list[Any] = []
            key = SharePartitionKey(self.group, self.sides[OURS].topic_id, index)
            broker.services.share_coordinator.initialize(
                key, 0, 0, lambda *_, a=answers: a.append(_), lambda *_, a=answers: a.append(_), now_ms()
            )
            assert answers[0][0] is ErrorCode.NONE

    # Steps

    def run(self, steps: int) -> None:
        actions: list[tuple[Callable[[Member], None], int]] = [
            (self.fetch, 30), (self.acknowledge, 25), (self.append, 14), (self.misbehave, 5), (self.close, 3),
            (self.hang_up, 1), (self.delete_records, 1), (self.pause, 1),
        ]  # fmt: skip
        self._begin_era()
        for _ in range(steps):
            if time.monotonic() - self._begun_s > LOCK_MS / 2_000:
                self.pause(self.keeper)
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(self.random.choice(self.members))
        self.compare_states()

    def both(self, who: Member, make: Callable[[Side], Any], version: int = 2) -> Any:
        """Return the response of both sides, which must be the same."""
        requests = [make(side) for side in self.sides]
        name = type(requests[0]).__name__
        self.steps.append(f"{who.name} {name} {_brief(requests[OURS])}")
        kafka, ours = (
            self._reported(side, side.ask(who.name, request, version))
            for side, request in zip(self.sides, requests, strict=True)
        )
        assert kafka == ours, f"Kafka\n{kafka}\nours\n{ours}\nafter\n" + "\n".join(self.steps[-80:])
        reported = [(index, *one.values()) for (_, index), one in ours["partitions"].items()]
        self.steps.append(f"    {ours['error'] or ''} {reported}")
        return ours

    def _reported(self, side: Side, answer: Any) -> dict[str, Any]:
        partitions = {}
        for topic in answer.responses:
            assert topic.topic_id in (side.topic_id, bytes(15) + b"\x09")
            for one in topic.partitions:
                reported: dict[str, Any] = {"error": one.error_code, "message": one.error_message}
                if hasattr(one, "acquired_records"):
                    reported["ack"] = (one.acknowledge_error_code, one.acknowledge_error_message)
                    reported["acquired"] = [
                        (got.first_offset, got.last_offset, got.delivery_count) for got in one.acquired_records
                    ]
                    reported["batches"] = [
                        (got.base_offset, got.last_offset) for got in split_batches(one.records or b"")
                    ]
                partitions[topic.topic_id == side.topic_id, one.partition_index] = reported
        return {
            "error": answer.error_code,
            "message": answer.error_message,
            "lock_ms": answer.acquisition_lock_timeout_ms,
            "partitions": dict(sorted(partitions.items())),
        }

    def _learn(self, member: Member, reported: dict[str, Any]) -> None:
        if reported["error"] == 0:
            member.epoch += 1
        for (_, index), one in reported["partitions"].items():
            for first, last, _ in one.get("acquired", ()):
                member.held.setdefault(index, []).append((first, last))
                self.reached[index] = max(self.reached[index], last + 1)

    def fetch(self, member: Member) -> None:
        limited = self.random.random() < 0.3
        changes = {
            "max_records": self.random.choice(self.limits),
            "batch_size": self.random.choice([1, 2, 5, 500]),
            "share_acquire_mode": int(limited),
        }
        acks = self._acks(member) if member.epoch > 0 and self.random.random() < 0.4 else {}
        reported = self.both(member, lambda side: self._fetch_request(side, member, acks, **changes))
        self._learn(member, reported)

    def acknowledge(self, member: Member) -> None:
        if member.epoch == 0:
            self.fetch(member)
            return
        acks = self._acks(member)
        renews = any(RENEW in types for batches in acks.values() for _, _, types in batches)
        reported = self.both(member, lambda side: self._ack_request(side, member, acks, is_renew_ack=renews))
        self._learn(member, reported)

    def _acks(self, member: Member) -> dict[int, list[tuple[int, int, list[int]]]]:
        """Return acknowledgements of records that a member holds: mostly once, mostly of all records, of every type."""
        acks: dict[int, list[tuple[int, int, list[int]]]] = {}
        renews = self.random.random() < 0.1
        for index, held in member.held.items():
            self.random.shuffle(held)
            taken = [held.pop() for _ in range(self.random.randint(0, len(held)))]
            batches = []
            for first, last in sorted(set(taken)):
                if self.random.random() < 0.2 and last > first:
                    cut = self.random.randint(first, last - 1)
                    held.append((cut + 1, last))
                    last = cut
                kinds = [ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT] + ([RENEW] * 3 if renews else [])
                if self.random.random() < 0.3:
                    types = [self.random.choice(kinds) for _ in range(first, last + 1)]
                else:
                    types = [self.random.choice(kinds)]
                if RENEW in types or self.random.random() < 0.05:
                    held.append((first, last))
                batches.append((first, last, types))
            if batches:
                acks[index] = batches
        return acks

    def append(self, _: Member) -> None:
        self.produce(
            self.random.randrange(self.partition_count),
            [self.random.choice([1, 1, 2, 4, 9, 20]) for _ in range(self.random.randint(1, 4))],
        )

    def produce(self, index: int, sizes: Sequence[int]) -> None:
        for size in sizes:
            # recent timestamps, because retention deletes old records
            builder, now = BatchBuilder(base_offset=0), now_ms()
            for number in range(size):
                builder.append(now, None, b"record %d" % number)
            data = ProduceRequest.PartitionProduceData(index=index, records=bytes(builder.build()))
            topic = ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])
            for side in self.sides:
                answer = side.ask("admin", ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0
            self.ends[index] += size

    def misbehave(self, member: Member) -> None:
        index = self.random.randrange(self.partition_count)
        end = self.ends[index]
        first = self.random.randrange(end)
        kinds: list[dict[int, list[tuple[int, int, list[int]]]]] = [
            {index: [(first, first, [ACCEPT])]},
            {index: [(first, end + 5, [ACCEPT])]},
            {index: [(end + 3, end + 4, [RELEASE])]},
            {index: [(first, first - 1, [ACCEPT])]},
            {index: [(first, first + 3, [ACCEPT, ACCEPT])]},
            {index: [(first, first, [RENEW])]},
            {index: [(first, first, [7])]},
            {index: [(first, first, [])]},
            {index: [(first, first, [0])], 77: [(0, 0, [ACCEPT])]},
            {index: []},
        ]
        acks = self.random.choice(kinds)
        epoch = self.random.choice([member.epoch, member.epoch, member.epoch, member.epoch + 1, 999])
        if self.random.random() < 0.5:
            reported = self.both(member, lambda side: self._ack_request(side, member, acks, share_session_epoch=epoch))
        else:
            reported = self.both(
                member, lambda side: self._fetch_request(side, member, acks, share_session_epoch=epoch)
            )
        if epoch == member.epoch:
            self._learn(member, reported)

    def close(self, member: Member) -> None:
        """Close the session; or open it again, after which the member still holds its records."""
        if self.random.random() < 0.3:
            member.epoch = 0
            self.fetch(member)
            return
        acks = self._acks(member) if member.epoch > 0 else {}
        for index in acks:
            acks[index] = [
                (first, last, [one if one != RENEW else ACCEPT for one in types]) for first, last, types in acks[index]
            ]
        if self.random.random() < 0.5:
            self.both(member, lambda side: self._ack_request(side, member, acks, share_session_epoch=-1))
        else:
            self.both(member, lambda side: self._fetch_request(side, member, acks, share_session_epoch=-1))
        member.epoch = 0
        member.held.clear()
        time.sleep(AFTER_RESPONSE_S)

    def hang_up(self, member: Member) -> None:
        self.steps.append(f"{member.name} hangs up")
        for side in self.sides:
            side.hang_up(member.name)
        member.epoch = 0
        member.held.clear()
        time.sleep(AFTER_RESPONSE_S)

    def delete_records(self, _: Member) -> None:
        index = self.random.randrange(self.partition_count)
        # Not past the acquired records: Kafka's start offset may then go back for the duration of a fetch.
        offset = self.random.randint(0, self.reached[index])
        partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=self.topic, partitions=[partition])
        self.steps.append(f"records of {index} are deleted up to {offset}")
        for side in self.sides:
            side.ask("admin", DeleteRecordsRequest(topics=[topic], timeout_ms=5_000), 2)

    def pause(self, _: Member) -> None:
        """Pause until all locks have expired."""
        self.steps.append("pause")
        time.sleep(max(self._begun_s + 2 * LOCK_MS / 1_000 + 0.2 - time.monotonic(), LOCK_MS / 1_000 + 0.2))
        broker = self.sides[OURS].broker
        assert broker is not None
        broker.tick(now_ms())
        time.sleep(AFTER_RESPONSE_S)
        self._begin_era()

    def _begin_era(self) -> None:
        self._begun_s = time.monotonic()

    # Persisted state

    def compare_states(self) -> None:
        kafka, ours = self.sides
        assert ours.broker is not None
        partitions = [
            ReadShareGroupStateRequest.PartitionData(partition=index, leader_epoch=0)
            for index in range(self.partition_count)
        ]
        topics = [ReadShareGroupStateRequest.ReadStateData(topic_id=kafka.topic_id, partitions=partitions)]
        answer = kafka.ask("admin", ReadShareGroupStateRequest(group_id=self.group, topics=topics), 0)
        for reported in answer.results[0].partitions:
            found: list[Any] = []
            key = SharePartitionKey(self.group, ours.topic_id, reported.partition)
            ours.broker.services.share_coordinator.read_summary(
                key, lambda *_, f=found: f.append(_), lambda *_, f=found: f.append(_), 0
            )
            state = found[0][0]
            theirs = [tuple(one) for one in combine((), state_batches(reported.state_batches), reported.start_offset)]
            mine = [tuple(one) for one in combine((), state.batches, state.start_offset)]
            kafkas, own = (reported.start_offset, theirs), (state.start_offset, mine)
            assert kafkas == own, f"Kafka\n{kafkas}\nours\n{own}\nafter\n" + "\n".join(self.steps[-80:])

    # Requests

    def _fetch_request(self, side: Side, member: Member, acks: Any = None, **changes: Any) -> ShareFetchRequest:
        acks = acks or {}
        partitions = [
            ShareFetchRequest.FetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareFetchRequest.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=types
                    )
                    for first, last, types in acks.get(index, ())
                ],
            )
            for index in (range(self.partition_count) if member.epoch == 0 else acks)
        ]
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=member.name,
            share_session_epoch=member.epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=[ShareFetchRequest.FetchTopic(topic_id=side.topic_id, partitions=partitions)] if partitions else [],
        )
        if any(RENEW in types for batches in acks.values() for _, _, types in batches):
            changes |= {"is_renew_ack": True, "max_bytes": 0, "min_bytes": 0, "max_records": 0}
        elif any(acks.values()):
            # Kafka persists while it fetches: released records may be in the response or not
            changes["max_records"] = 0
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def _ack_request(self, side: Side, member: Member, acks: Any, **changes: Any) -> ShareAcknowledgeRequest:
        partitions = [
            ShareAcknowledgeRequest.AcknowledgePartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareAcknowledgeRequest.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=types
                    )
                    for first, last, types in batches
                ],
            )
            for index, batches in acks.items()
        ]
        topics = [ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=side.topic_id, partitions=partitions)]
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=member.name,
            share_session_epoch=member.epoch,
            topics=topics if partitions else [],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def end(self) -> None:
        for side in self.sides:
            side.close()


def _brief(request: Any) -> str:
    acks = {
        one.partition_index: [
            (batch.first_offset, batch.last_offset, *batch.acknowledge_types) for batch in one.acknowledgement_batches
        ]
        for topic in request.topics
        for one in topic.partitions
    }
    asked = (
        f"{request.max_records} by {request.batch_size}, mode {request.share_acquire_mode}"
        if isinstance(request, ShareFetchRequest)
        else ""
    )
    return f"epoch {request.share_session_epoch} {asked} {acks or ''}"


def _until(condition: Callable[[], bool], patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)
