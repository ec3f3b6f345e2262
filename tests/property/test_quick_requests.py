"""The short way of Produce and Fetch: the same answers, and the same log, as the general way.

Two brokers get the same requests; one of them has its short way taken away.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.log.segments.position import FileSlice
from tailrace.model.ids import TopicPartition
from tailrace.protocol import request_kernels
from tailrace.protocol.headers import RequestHeader, read_request_header, write_request_header
from tailrace.protocol.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from tailrace.protocol.registry import request_class
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, start

CONTEXT = ConnectionContext(7)
TOPIC = "topic"
_COMPACT = [CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="compact")]
TOPICS = [
    CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1),
    CreateTopicsRequest.CreatableTopic(name="compacted", num_partitions=1, replication_factor=1, configs=_COMPACT),
]


def _interpreted():
    source = Path(request_kernels.__file__).parent / "request_kernels.py"
    spec = importlib.util.spec_from_file_location("interpreted_request_kernels", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


interpreted = _interpreted()


class Pair:
    """A broker, and one without the short way."""

    def __init__(self, new_files=MemoryFiles) -> None:
        self.files = [new_files(), new_files()]
        self.brokers = [start(files) for files in self.files]
        for broker in self.brokers:
            broker.services.local_controller.create_topics(CreateTopicsRequest(topics=TOPICS), NOW_MS)
        self.ids, others = (
            {name: topic.id for name, topic in one.services.controller.image.topics.items()} for one in self.brokers
        )
        assert self.ids == others
        self.quick, self.slow = self.brokers
        for broker in self.brokers:  # what loads the handlers, and with them the short ways
            for request in (ProduceRequest(acks=1), FetchRequest(session_epoch=-1)):
                broker.handle(frame(request, 9 if isinstance(request, ProduceRequest) else 12), CONTEXT, NOW_MS)
            broker.take_replies()
        self.slow.dispatcher._quick.clear()

    def ask(self, build, version: int, damage=lambda data: None) -> list[object]:
        """`build(ids)` makes the request from the topics' ids; both give the same answer."""
        answers = []
        for broker in self.brokers:
            data = frame(build(self.ids), version)
            damage(data)
            broker.handle(memoryview(data), CONTEXT, NOW_MS)
            waiting = len(broker.services.purgatory)
            broker.tick(NOW_MS + 100_000_000)
            replies = [(told(reply.parts), reply.throttle_ms, reply.close) for reply in broker.take_replies()]
            answers.append((waiting, replies))
        assert answers[0] == answers[1]
        return answers[0][1]

    def logs(self) -> list[list[tuple[int, int, bytes]]]:
        return [
            [
                (partition.log.log_end_offset, partition.log.high_watermark, stored(partition.log))
                for partition in sorted(broker.services.partitions, key=lambda one: one.key)
            ]
            for broker in self.brokers
        ]

    def counts(self) -> list[object]:
        return [
            (
                {
                    name: {counter: getattr(traffic, counter) for counter in traffic.COUNTERS}
                    for name, traffic in broker.services.partitions.traffic.items()
                },
                {api: dict(codes) for api, codes in broker.services.replies.errors.items()},
            )
            for broker in self.brokers
        ]


def stored(log) -> bytes:
    return b"".join(segment.log.read(0, segment.size) for segment in log.segments)


def frame(request, version: int) -> bytearray:
    header = RequestHeader(request.SCHEMA.api_key, version, 77, "client")
    return bytearray(write_request_header(header) + request.encode(version))


def told(parts) -> bytes | None:
    """The bytes of a reply."""
    if parts is None:
        return None
    return b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts)


batches = st.builds(
    lambda *parts: parts,
    st.lists(st.binary(max_size=40), min_size=1, max_size=4),
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]),
    st.sampled_from([None, b"key"]),
    st.sampled_from([-1, -1, 5]),
    st.integers(0, 3),
    st.sampled_from([0, 0, 0, 3]),
)


def build_batch(values, codec, key, producer, sequence, offset) -> bytes:
    builder = BatchBuilder(
        base_offset=offset,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence if producer >= 0 else -1,
    )
    for value in values:
        builder.append(NOW_MS, key, value)
    return builder.build()


@st.composite
def produces(draw):
    topic = draw(st.sampled_from([TOPIC, TOPIC, "compacted", "missing"]))
    index = draw(st.sampled_from([0, 0, 1, 5]))
    records = b"".join(build_batch(*draw(batches)) for _ in range(draw(st.sampled_from([1, 1, 1, 2, 0]))))
    if records and draw(st.integers(0, 9)) == 0:
        broken = bytearray(records)
        broken[draw(st.integers(0, len(broken) - 1))] ^= 1 << draw(st.integers(0, 7))
        records = bytes(broken)
    version = draw(st.integers(9, 13))
    acks = draw(st.sampled_from([-1, -1, 1, 0, 2]))
    times = draw(st.sampled_from([1, 1, 2]))

    def build(ids):
        data = [ProduceRequest.PartitionProduceData(index=index + more, records=records) for more in range(times)]
        name = {"topic_id": ids.get(topic, b"\1" * 16)} if version >= 13 else {"name": topic}
        topics = [ProduceRequest.TopicProduceData(**name, partition_data=data)]
        return ProduceRequest(acks=acks, timeout_ms=5, topic_data=topics)

    return build, version


@st.composite
def fetches(draw):
    topic = draw(st.sampled_from([TOPIC, TOPIC, "compacted", "missing"]))
    version = draw(st.integers(12, 17))
    partition = FetchRequest.FetchPartition(
        partition=draw(st.sampled_from([0, 0, 1, 5])),
        fetch_offset=draw(st.integers(-1, 20)),
        partition_max_bytes=draw(st.sampled_from([0, 1, 150, 10_000, -1])),
        current_leader_epoch=draw(st.sampled_from([-1, -1, 0, 4])),
        last_fetched_epoch=draw(st.sampled_from([-1, -1, 0])),
    )
    settings = {
        "max_wait_ms": draw(st.sampled_from([0, 500])),
        "min_bytes": draw(st.sampled_from([0, 1, 300, 2**31 - 1])),
        "max_bytes": draw(st.sampled_from([0, 200, 2**31 - 1, -1])),
        "isolation_level": draw(st.sampled_from([0, 1, 2])),
        "session_epoch": draw(st.sampled_from([-1, -1, -1, 1])),
        "rack_id": draw(st.sampled_from(["", "rack"])),
    }

    def build(ids):
        name = {"topic_id": ids.get(topic, b"\1" * 16)} if version >= 13 else {"topic": topic}
        return FetchRequest(topics=[FetchRequest.FetchTopic(**name, partitions=[partition])], **settings)

    return build, version


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(produces(), fetches()), min_size=1, max_size=12))
def test_both_ways_answer_and_append_the_same(requests) -> None:
    pair = Pair()
    for build, version in requests:
        pair.ask(build, version)
    quick, slow = pair.logs()
    assert quick == slow
    quick, slow = pair.counts()
    assert quick == slow


@settings(max_examples=60, deadline=None)
@given(st.one_of(produces(), fetches()), st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["flip", "cut"]))
def test_a_damaged_request_is_judged_the_same(request, place, bits, how) -> None:
    pair = Pair()
    pair.ask(lambda ids: _produce(ids, b"value"), 13)
    build, version = request

    def damage(data: bytearray) -> None:
        if how == "flip":
            data[8 + place % (len(data) - 8)] ^= bits
        else:
            del data[8 + place % (len(data) - 8) :]

    pair.ask(build, version, damage)
    quick, slow = pair.logs()
    assert quick == slow


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.one_of(produces(), fetches()), st.integers(0, 400)), max_size=12),
    st.sampled_from([None, 3, 7]),
)
def test_fetches_that_wait_are_answered_the_same(steps, moved_at) -> None:
    """On several connections, each of which waits for its answer before it goes on."""
    pair = Pair()
    heard = []
    for broker in pair.brokers:
        replies: list[object] = []
        busy: set[int] = set()
        now_ms = NOW_MS
        for number, (connection, (build, version), passed_ms) in enumerate(steps):
            if number == moved_at:  # the leader goes on in a new epoch
                broker.services.partitions.find(TopicPartition(TOPIC, 0)).leader_epoch += 1
            if connection not in busy:
                busy.add(connection)
                broker.handle(memoryview(frame(build(pair.ids), version)), ConnectionContext(connection), now_ms)
            now_ms += passed_ms
            broker.tick(now_ms)
            for reply in broker.take_replies():
                busy.discard(reply.connection_id)
                replies.append((number, reply.connection_id, told(reply.parts), reply.close))
        broker.tick(now_ms + 10_000)
        replies += [(reply.connection_id, told(reply.parts)) for reply in broker.take_replies()]
        heard.append(replies)
    assert heard[0] == heard[1]
    quick, slow = pair.counts()
    assert quick == slow


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.one_of(produces(), produces(), fetches()), min_size=1, max_size=6), max_size=4))
def test_a_round_of_many_connections_is_answered_the_same(rounds) -> None:
    """What one round brings for a partition is written together."""
    pair = Pair()
    heard = []
    for broker in pair.brokers:
        replies: list[object] = []
        for number, requests in enumerate(rounds):
            for connection, (build, version) in enumerate(requests):
                data = memoryview(frame(build(pair.ids), version))
                broker.handle(data, ConnectionContext(100 * number + connection), NOW_MS)
            replies += [(one.connection_id, told(one.parts), one.close) for one in broker.take_replies()]
        broker.tick(NOW_MS + 10_000)
        replies += [(one.connection_id, told(one.parts)) for one in broker.take_replies()]
        heard.append(replies)
    assert heard[0] == heard[1]
    quick, slow = pair.logs()
    assert quick == slow
    quick, slow = pair.counts()
    assert quick == slow


@pytest.mark.parametrize("room", [0, 80, 170, 10_000])
def test_a_disk_that_takes_a_part_of_a_round_is_answered_the_same(room) -> None:
    pair = Pair(lambda: FaultyFiles(MemoryFiles()))
    heard = []
    for broker, files in zip(pair.brokers, pair.files, strict=True):
        files.free_bytes = room
        for connection in range(3):
            data = memoryview(frame(_produce(pair.ids, b"value"), 13))
            broker.handle(data, ConnectionContext(connection), NOW_MS)
        heard.append([(one.connection_id, told(one.parts)) for one in broker.take_replies()])
    assert heard[0] == heard[1]


def test_one_write_for_all_that_a_round_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    log = pair.quick.services.partitions.find(TopicPartition(TOPIC, 0)).log
    file = log.segments.active.log
    pair.ask(lambda ids: _produce(ids, b"first"), 13)
    writes = []
    monkeypatch.setattr(
        file, "write", lambda position, data, write=file.write: writes.append(len(data)) or write(position, data)
    )
    for connection in range(5):
        pair.quick.handle(memoryview(frame(_produce(pair.ids, b"value"), 13)), ConnectionContext(connection), NOW_MS)
        assert log.log_end_offset == 1
    assert [reply.connection_id for reply in pair.quick.take_replies()] == [0, 1, 2, 3, 4]
    assert (log.log_end_offset, log.high_watermark, len(writes)) == (6, 6, 1)


def _produce(ids, *values: bytes) -> ProduceRequest:
    records = build_batch(values, Codec.NONE, b"key", -1, 0, 0)
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=-1, topic_data=[ProduceRequest.TopicProduceData(topic_id=ids[TOPIC], partition_data=[data])]
    )


def _fetch(ids) -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1_000, session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic_id=ids[TOPIC], partitions=[partition])],
    )  # fmt: skip


def test_what_comes_most_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    monkeypatch.setattr("tailrace.broker.dispatcher.read_request_header", lambda *_: pytest.fail("the general way"))
    broker, ids = pair.quick, pair.ids
    broker.handle(memoryview(frame(_produce(ids, b"one", b"two"), 13)), CONTEXT, NOW_MS)
    broker.handle(memoryview(frame(_fetch(ids), 17)), CONTEXT, NOW_MS)
    assert len(broker.take_replies()) == 2


def test_what_waits_goes_with_its_connection() -> None:
    broker = Pair().quick
    for connection, value in ((1, b"one"), (2, b"two")):
        data = frame(_fetch({TOPIC: broker.services.controller.image.topics[TOPIC].id}), 17)
        broker.handle(memoryview(data), ConnectionContext(connection), NOW_MS)
        assert (len(broker.services.purgatory), broker.take_replies()) == (1, [])
        if connection == 1:
            broker.connection_closed(connection, NOW_MS)
            assert len(broker.services.purgatory) == 0
        else:
            broker.handle(
                memoryview(frame(_produce({TOPIC: broker.services.controller.image.topics[TOPIC].id}, value), 13)),
                CONTEXT,
                NOW_MS,
            )
            assert len(broker.take_replies()) == 2
    assert broker.services.replies._parked == {}


def test_with_a_quota_everything_goes_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    broker, ids = pair.quick, pair.ids
    monkeypatch.setattr(broker.services.throttling, "is_on", True)
    monkeypatch.setattr(broker.dispatcher, "_quick", {0: lambda *_: pytest.fail("the short way")})
    broker.handle(memoryview(frame(_produce(ids, b"one"), 13)), CONTEXT, NOW_MS)
    assert len(broker.take_replies()) == 1


@pytest.mark.skipif(not request_kernels.COMPILED, reason="the kernels were not compiled here")
@settings(max_examples=200, deadline=None)
@given(st.one_of(produces(), fetches()), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3))
def test_compiled_and_interpreted_read_the_same(request, changes) -> None:
    build, version = request
    data = frame(build({TOPIC: b"\2" * 16}), version)
    for place, byte in changes:
        data[place % len(data)] = byte
    for cut in (len(data), len(data) // 2, 3):
        part = bytes(data[:cut])
        assert request_kernels.read_produce(part) == interpreted.read_produce(part)


@settings(max_examples=200, deadline=None)
@given(produces())
def test_what_is_read_quickly_is_what_the_message_says(request) -> None:
    build, version = request
    data = frame(build({TOPIC: b"\2" * 16}), version)
    header, position = read_request_header(data)
    message, _ = request_class(header.api_key).read(bytes(data), version, position)
    read = request_kernels.read_produce(data)
    if read is not None:
        (topic,) = message.topic_data
        (partition,) = topic.partition_data
        identity = topic.topic_id if version >= 13 else topic.name.encode()
        assert (read[0], read[1], read[2], data[read[3] : read[4]], read[5], data[read[6] : read[7]]) == (
                version, 77, message.acks, identity, partition.index, partition.records,
            )  # fmt: skip
