"""Requests: bytes of clients → frames → the broker, in memory.

An input is what three clients send, frame after frame; a frame's correlation id says whose it is. What must hold:

- `handle`, `tick` and `take_replies` raise nothing, whatever the frame, nor anything that the broker would survive;
- every frame is answered once, with bytes that its client can decode, or its connection is closed, at the latest when
  its time is up;
- a client that does nothing wrong is served afterwards, and everybody else's connection stays;
- the broker can be stopped, and opens again with all that it acknowledged.

A broker lives for some inputs, so that they meet each other's traces; `history` has those it met.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.api_table import API_TABLE
from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.broker.startup.open_broker import open_broker
from tailrace.log.segments.position import FileSlice
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.framing import InvalidFrame
from tailrace.protocol.headers import RequestHeader, read_request_header, read_response_header
from tailrace.protocol.messages import CreateTopicsRequest, FetchRequest, MetadataRequest, ProduceRequest
from tailrace.protocol.registry import response_class
from tailrace.records.batch import split_batches
from tests.fuzz.frames import FRAME_BYTES_MAX, join_frames, split_frames
from tests.fuzz.limits import InvariantBroken, limited
from tests.fuzz.request_mutator import RequestMutator
from tests.fuzz.request_seeds import NOW_MS, TOPICS, request_frame, seed_frames
from tests.support.api_cases.common import batch
from tests.support.frame_buffer import FrameBuffer
from tests.support.memory_files import MemoryFile, MemoryFiles, memory_files

CLIENTS = 3
INPUTS_A_BROKER = 50
ALLOCATED_BYTES_MAX = 100_000
THROTTLED_MAX = 20
REPLY_BYTES_MAX = 64_000_000
STEADY = "steady"  # the topic of the client that does nothing wrong; no seed knows its name


class SmallFile(MemoryFile):
    def allocate(self, size: int) -> None:
        super().allocate(min(size, ALLOCATED_BYTES_MAX))


class SmallFiles(MemoryFiles):
    """Files that a client cannot make us set aside a gigabyte for (`preallocate`): on a disk that is not in memory."""

    file_class = SmallFile


class Throttled(Exception):
    """Even a good client waits without end: an input has set a tiny quota for everybody."""


class Waiting:
    """A client of the input, and what it waits for."""

    def __init__(self, connection_id: int) -> None:
        self.context = ConnectionContext(connection_id)
        self.frame: bytes | None = None
        self.sends_bare_token = False  # the frame is a SASL token without a header, and so is its response


class RequestTarget:
    def __init__(self, static: dict[str, str] | None = None) -> None:
        self._static = static
        self._now_ms = NOW_MS
        self._connection_ids = count(1)
        self._ids = count(1_000_000)  # low ones are reserved
        self.topic_ids: dict[str, bytes] = {}
        self._gone: set[int] = set()  # connections that their clients have closed
        self._broker = self._open(SmallFiles())
        self._create_topics()
        self._broker.close(self._now_ms)
        self._template = self._files.tree()
        self._seeds = seed_frames(self)
        self._mutator = RequestMutator(self._seeds)
        self.history: list[bytes] = []
        self.renew()

    # The broker

    def _open(self, files: MemoryFiles) -> Broker:
        self._files = files
        self._clients = {number: Waiting(next(self._connection_ids)) for number in range(CLIENTS)}
        self._steady = ConnectionContext(next(self._connection_ids))
        broker = open_broker(
            files,
            BrokerConfig.of(log_dirs=["/data"], port=9092, settings=self._static),
            now_ms=self._now_ms,
            new_id=lambda: next(self._ids).to_bytes(16, "big"),
            next_int=lambda limit: next(self._ids) % limit,
        )
        broker.services.internal_errors.survive = raise_it  # type: ignore[method-assign]
        return broker

    def _create_topics(self) -> None:
        wanted = CreateTopicsRequest(timeout_ms=1000)
        # A client can change the broker's defaults, but not what this topic has of its own.
        steady = {"max.message.bytes": "1000000", "min.insync.replicas": "1", "compression.type": "producer"}
        steady |= {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete", "flush.messages": "100"}
        steady |= {"retention.ms": "-1", "retention.bytes": "-1"}
        for name, settings in (*TOPICS.items(), (STEADY, steady)):
            configs = [wanted.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
            partitions = 3 if name == "orders" else 1
            wanted.topics.append(
                wanted.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
            )
        answer = self._ask_well(wanted, 7)
        assert not any(topic.error_code for topic in answer.topics)
        for topic in self._ask_well(MetadataRequest(topics=None), 12).topics:
            self.topic_ids[topic.name] = topic.topic_id
        for number in range(5):
            self._produce_well(b"%d" % number, topic="orders")

    def topic_id(self, name: str) -> bytes:
        return self.topic_ids.get(name, b"\x07" * 16)

    def renew(self) -> None:
        self._now_ms = NOW_MS
        self._broker = self._open(SmallFiles(memory_files(self._template).root))
        self.history.clear()
        self._acknowledged: list[bytes] = []

    # One input

    def seeds(self) -> list[bytes]:
        return [join_frames([frame]) for frame in self._seeds]

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        return self._mutator.mutate(data, dice)

    def pieces(self, data: bytes) -> list[bytes]:
        return [join_frames([frame]) for frame in split_frames(data)]

    def run(self, data: bytes) -> None:
        with limited():
            self._run(data)

    def _run(self, data: bytes) -> None:
        if len(self.history) == INPUTS_A_BROKER:
            self._restart()
            self.renew()
        self.history.append(data)
        frames = FrameBuffer(FRAME_BYTES_MAX)
        frames.receive(data)
        while True:
            try:
                frame = frames.next_frame()
            except InvalidFrame:
                break
            if frame is None:
                break
            self._send(frame)
        for client in self._clients.values():
            self._await_reply(client)
        self._check_steady()

    def replay(self, inputs: Sequence[bytes]) -> None:
        """Send inputs to a new broker one after another, then stop and restart the broker."""
        self.renew()
        for data in inputs:
            self.run(data)
        self._restart()
        self.renew()

    def _send(self, frame: bytes) -> None:
        client = self._clients[int.from_bytes(frame[4:8], "big") % CLIENTS]
        self._await_reply(client)
        client.frame = frame
        self._now_ms += 1
        self._hand_over(frame, client)
        self._take_replies()

    def _hand_over(self, frame: bytes, client: Waiting) -> None:
        """Give a frame to the broker, as the client's listener does."""
        self._broker.handle(memoryview(bytearray(frame)), client.context, self._now_ms)

    def _answered(self, client: Waiting, response: Any) -> None:
        """Note the response that a client has got."""

    def _replaced(self, client: Waiting) -> None:
        """Note that a client has a new connection."""

    def _await_reply(self, client: Waiting) -> None:
        for _ in range(1000):
            if client.frame is None:
                return
            deadline = self._broker.services.purgatory.next_deadline_ms()
            if deadline is None:
                break
            self._now_ms = max(self._now_ms, deadline) + 1
            self._broker.tick(self._now_ms)
            self._take_replies()
        raise InvariantBroken(f"{describe(client.frame)} is never answered")

    def _take_replies(self) -> None:
        for reply in self._broker.take_replies():
            if reply.connection_id in self._gone:  # the server drops it
                continue
            waiting = [one for one in self._clients.values() if one.context.connection_id == reply.connection_id]
            if not waiting or waiting[0].frame is None:
                raise InvariantBroken(f"a reply to connection {reply.connection_id}, which asked for nothing")
            (client,) = waiting
            assert client.frame is not None
            self._answered(client, None if client.sends_bare_token else check_reply(reply, client.frame))
            client.frame = None
            if reply.close:
                self._broker.connection_closed(client.context.connection_id, self._now_ms)
                client.context = ConnectionContext(next(self._connection_ids))
                self._replaced(client)

    # The client that does nothing wrong

    def _ask_well(self, request: Any, version: int) -> Any:
        frame = request_frame(request, version, 1)
        self._broker.handle(memoryview(bytearray(frame)), self._steady, self._now_ms)
        replies = self._broker.take_replies()
        if len(replies) != 1 or replies[0].connection_id != self._steady.connection_id or replies[0].close:
            raise InvariantBroken(f"a good request is answered by {replies}")
        return check_reply(replies[0], frame)

    def _produce_well(self, value: bytes, topic: str = STEADY) -> int:
        produce = ProduceRequest(acks=-1, timeout_ms=1000)
        records = batch(self._now_ms, value)
        data = produce.TopicProduceData(
            name=topic, partition_data=[produce.PartitionProduceData(index=0, records=records)]
        )
        produce.topic_data = [data]
        (answered,) = self._ask_well(produce, 9).responses
        (partition,) = answered.partition_responses
        if partition.error_code:
            raise InvariantBroken(f"a good produce is refused with {partition.error_code}")
        return int(partition.base_offset)

    def _check_steady(self) -> None:
        value = b"value %d" % len(self._acknowledged)
        offset = self._produce_well(value)
        self._acknowledged.append(value)
        if offset != len(self._acknowledged) - 1:
            raise InvariantBroken(f"offset {offset} for record {len(self._acknowledged) - 1}")
        with suppress(Throttled):
            if value not in self._fetch_well(offset):
                raise InvariantBroken("what was acknowledged is not there")

    def _fetch_well(self, offset: int) -> bytes:
        """Fetch the records from an offset on, up to the end of its segment."""
        fetch = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=10_000_000)
        partition = fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000_000)
        fetch.topics = [fetch.FetchTopic(topic=STEADY, partitions=[partition])]
        reported = self._ask_well(fetch, 12)
        for _ in range(THROTTLED_MAX):
            if reported.responses or not reported.throttle_time_ms:
                break
            # An input has set a quota for everybody: there is no response until the client has waited.
            self._now_ms += reported.throttle_time_ms
            reported = self._ask_well(fetch, 12)
        if not reported.responses and reported.throttle_time_ms:
            raise Throttled
        (answered,) = reported.responses
        (data,) = answered.partitions
        if data.error_code:
            raise InvariantBroken(f"a good fetch is refused with {data.error_code}")
        return bytes(data.records)

    def _restart(self) -> None:
        self._broker.tick(self._now_ms + 600_000)
        self._broker.take_replies()
        self._broker.close(self._now_ms)
        if self._files.locked:
            raise InvariantBroken(f"locks are left: {self._files.locked}")
        self._broker = self._open(SmallFiles(memory_files(self._files.tree()).root))
        records = b""
        offset = 0
        while offset < len(self._acknowledged):
            try:
                piece = self._fetch_well(offset)
            except Throttled:
                return
            if not piece:
                break
            records += piece
            offset = last_offset(piece) + 1
        lost = [value for value in self._acknowledged if value not in records]
        if lost:
            raise InvariantBroken(f"{len(lost)} acknowledged records are gone after a clean stop")


def raise_it(place: str, error: Exception, now_ms: int, **about: object) -> None:
    """Raise an exception that a broker would survive: here it is a finding."""
    raise error


def last_offset(records: bytes) -> int:
    return list(split_batches(records))[-1].last_offset


def describe(frame: bytes | None) -> str:
    if frame is None:
        return "nothing"
    try:
        header, _ = read_request_header(frame)
    except ProtocolError:
        return f"frame {frame[:8].hex()}"
    return f"API {header.api_key} version {header.api_version}"


def check_reply(reply: Reply, frame: bytes) -> Any:
    """Decode the reply to a frame as its sender does and return it, or return None without a reply."""
    if reply.parts is None:
        return None
    data = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in reply.parts)
    if len(data) > REPLY_BYTES_MAX:
        raise InvariantBroken(f"{describe(frame)} is answered by {len(data)} bytes")
    header = read_request_header(frame)[0]
    key, version = header.api_key, answered_version(header)
    correlation_id, position = read_response_header(key, version, data)
    if correlation_id != header.correlation_id:
        raise InvariantBroken(f"{describe(frame)} is answered under {correlation_id}")
    return response_class(key).decode(data, version, position)


def answered_version(header: RequestHeader) -> int:
    row = API_TABLE[header.api_key]
    return header.api_version if row.min_version <= header.api_version <= row.max_version else 0
