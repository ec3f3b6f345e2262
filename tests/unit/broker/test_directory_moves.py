"""A partition that moves between log directories: copied, caught up, swapped, and whole at every moment."""

from __future__ import annotations

import errno
from collections.abc import Callable
from itertools import count
from random import Random

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.log.directories.serial_work import RetriedWork, SerialWork, Task
from tailrace.log.disk.files import Files
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.records.batch import RecordBatch
from tailrace.records.record import iter_records
from tailrace.waiting.chore import Chore, run_now
from tests.support.batches import batch, stored_batches
from tests.support.crash_states import crash_points
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.memory_node import NOW_MS, Client
from tests.support.recording_files import RecordingFiles

A, B, C = "/a", "/b", "/c"
KEY = TopicPartition("orders", 0)


class HeldWork:
    """Chores of moves that wait until the test runs them, as on a busy worker. Other chores run at once."""

    def __init__(self) -> None:
        self.waiting: list[object] = []

    def __call__(self, work: object) -> None:
        if isinstance(work, RetriedWork) and isinstance(work.work, SerialWork | Task):
            run_now(work, NOW_MS)
        else:
            self.waiting.append(work)

    def run_next(self, now_ms: int = NOW_MS) -> None:
        work = self.waiting.pop(0)
        work.apply(work.run(), now_ms)  # type: ignore[attr-defined]


def start(
    files: Files, *paths: str, submit: Callable[[Chore], None] | None = None, settings: dict[str, str] | None = None
) -> Client:
    ids = count(1_000_000)
    broker = open_broker(
        files,
        BrokerConfig.of(log_dirs=paths or [A, B], port=9092, settings=settings),
        now_ms=NOW_MS,
        new_id=lambda: next(ids).to_bytes(16, "big"),
        next_int=lambda limit: next(ids) % limit,
        submit=submit,
    )
    return Client(broker)


def create(client: Client, **configs: str) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name=KEY.topic, num_partitions=1, replication_factor=1)
    topic.configs = [
        m.CreateTopicsRequest.CreatableTopicConfig(name=name.replace("_", "."), value=text)
        for name, text in configs.items()
    ]
    (made,) = client.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics
    assert made.error_code == 0, made.error_message


def produce(client: Client, *values: bytes) -> None:
    for value in values:
        request = m.ProduceRequest(acks=-1, timeout_ms=1000)
        data = request.PartitionProduceData(index=0, records=bytes(batch(value)))
        request.topic_data = [request.TopicProduceData(name=KEY.topic, partition_data=[data])]
        answer = client.ask(request, 9).responses[0].partition_responses[0]
        assert answer.error_code == 0


def order(client: Client, path: str, topic: str = KEY.topic, version: int = 2) -> int:
    request = m.AlterReplicaLogDirsRequest()
    request.dirs = [
        request.AlterReplicaLogDir(path=path, topics=[request.AlterReplicaLogDirTopic(name=topic, partitions=[0])])
    ]
    (answer,) = client.ask(request, version).results
    assert (answer.topic_name, len(answer.partitions)) == (topic, 1)
    return int(answer.partitions[0].error_code)


def run_pending(broker: Broker, now_ms: int = NOW_MS) -> None:
    for _ in range(10_000):
        if not broker.services.moves:
            return
        broker.tick(now_ms)
    raise AssertionError("the move does not end")


def place(broker: Broker) -> list[str]:
    return [one.path for one in broker.services.logs.directories if KEY in one.logs]


def values(broker: Broker) -> list[bytes]:
    log = broker.services.partitions.find(KEY).log
    return [bytes(one.value or b"") for stored in stored_batches(log) for one in iter_records(RecordBatch(stored.data))]


def log_dirs(client: Client) -> dict[tuple[str, bool], tuple[int, int]]:
    """Return size and lag by (directory, is it the future replica)."""
    answer = client.ask(m.DescribeLogDirsRequest(topics=None), 4)
    return {
        (one.log_dir, partition.is_future_key): (partition.partition_size, partition.offset_lag)
        for one in answer.results
        for topic in one.topics
        for partition in topic.partitions
    }


def other(path: str) -> str:
    return B if path == A else A


def test_a_move_keeps_records_epochs_and_watermarks() -> None:
    files = MemoryFiles()
    client = start(files)
    broker = client.broker
    create(client)
    written = [b"%d" % number * 1000 for number in range(600)]
    produce(client, *written[:500])
    (source,) = place(broker)
    held = HeldWork()
    broker.services.moves._submit = held
    before = broker.services.partitions.find(KEY).log
    assert order(client, other(source)) == 0
    assert order(client, other(source)) == 0  # again
    assert log_dirs(client)[other(source), True] == (0, 500)
    broker.tick(NOW_MS)
    held.run_next()
    size, lag = log_dirs(client)[other(source), True]
    assert size > 0
    assert 0 < lag < 500
    produce(client, *written[500:])
    while broker.services.moves:
        broker.tick(NOW_MS)
        if held.waiting:
            held.run_next()
    assert place(broker) == [other(source)]
    assert values(broker) == written
    after = broker.services.partitions.find(KEY).log
    assert (after.log_end_offset, after.high_watermark) == (600, 600)
    assert after.epochs.entries == before.epochs.entries
    assert log_dirs(client) == {(other(source), False): (before.size, 0)}
    state = broker.services.controller.image.partition(KEY)
    assert state is not None
    target = next(one for one in broker.services.logs.directories if one.path == other(source))
    assert state.directory_of(broker.services.controller.node_id) == target.id
    produce(client, b"on")
    names = [entry.name for entry in files.entries(source)]
    assert any(name.startswith("orders-0.") and name.endswith("-delete") for name in names)
    assert str(KEY) not in names
    broker.tick(NOW_MS + 60_000)
    assert not any(entry.name.startswith("orders-0") for entry in files.entries(source))
    broker.close(NOW_MS)
    client = start(files)
    assert values(client.broker) == [*written, b"on"]


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_interrupted_move_is_resumed_after_a_restart(is_clean: bool) -> None:
    files = MemoryFiles()
    held = HeldWork()
    client = start(files, submit=held)
    create(client)
    written = [b"%d" % number * 1000 for number in range(500)]
    produce(client, *written)
    (source,) = place(client.broker)
    order(client, other(source))
    client.broker.tick(NOW_MS)
    held.run_next()
    copied = log_dirs(client)[other(source), True]
    if is_clean:
        client.broker.close(NOW_MS)
    else:
        client.broker.abandon()
    client = start(files)
    assert log_dirs(client)[other(source), True] == copied
    run_pending(client.broker)
    assert place(client.broker) == [other(source)]
    assert values(client.broker) == written


@pytest.mark.long
@pytest.mark.parametrize("states_max", [150, pytest.param(100_000, marks=pytest.mark.slow)])
def test_synced_records_survive_every_crash_during_a_move(states_max: int) -> None:
    """With flush.messages=1 each acknowledged record is durable, so no crash may lose it."""
    files = RecordingFiles()
    client = start(files)
    create(client, flush_messages="1", internal_segment_bytes="200")
    written = [b"value %d" % number for number in range(8)]
    produce(client, *written)
    (source,) = place(client.broker)
    files.sync_directory("/")  # the directories themselves are durable
    first = len(files.trace)
    assert order(client, other(source)) == 0
    run_pending(client.broker)
    assert values(client.broker) == written
    dice = Random(7)
    states = {
        repr(sorted(state.tree.items())): state
        for point in crash_points(files, first=first)
        for state in point.states(dice)
    }
    assert len(states) > 300
    places = set()
    for state in dice.sample(list(states.values()), min(states_max, len(states))):
        again = start(memory_files(state.tree))
        assert values(again.broker) == written, (state.point, state.fates)
        run_pending(again.broker)
        assert values(again.broker) == written, (state.point, state.fates)
        places.add(*place(again.broker))
        produce(again, b"later")
    assert places == {A, B}


def test_records_deleted_during_a_move_are_deleted_in_the_copy() -> None:
    client = start(MemoryFiles())
    create(client)
    produce(client, *(b"%d" % number * 1000 for number in range(500)))
    (source,) = place(client.broker)
    held = HeldWork()
    client.broker.services.moves._submit = held
    order(client, other(source))
    client.broker.tick(NOW_MS)
    held.run_next()
    request = m.DeleteRecordsRequest(timeout_ms=10_000)
    wanted = request.DeleteRecordsPartition(partition_index=0, offset=450)
    request.topics = [request.DeleteRecordsTopic(name=KEY.topic, partitions=[wanted])]
    assert client.send(request, 2) == []  # answered when the copy has followed
    answered = []
    for _ in range(20):
        client.broker.tick(NOW_MS)
        if held.waiting:
            held.run_next()
        answered += client.broker.take_replies()
    (reply,) = answered
    (topic,) = client.decode(reply, 21, 2).topics
    assert topic.partitions[0].low_watermark == 450
    assert place(client.broker) == [other(source)]
    log = client.broker.services.partitions.find(KEY).log
    assert (log.log_start_offset, log.log_end_offset) == (450, 500)


def test_a_new_target_cancels_the_first_move_and_the_source_as_target_cancels_all() -> None:
    files = MemoryFiles()
    held = HeldWork()
    client = start(files, A, B, C, submit=held)
    create(client)
    produce(client, *(b"%d" % number * 1000 for number in range(500)))
    (source,) = place(client.broker)
    second, third = (path for path in (A, B, C) if path != source)
    order(client, second)
    client.broker.tick(NOW_MS)
    assert len(held.waiting) == 1
    assert order(client, third) == 0  # while a chore runs a step of the first move
    assert (third, True) in log_dirs(client)
    assert (second, True) not in log_dirs(client)
    held.run_next()
    assert [name for name in names_of(files, second) if name.endswith("-delete")]
    assert order(client, source) == 0
    assert log_dirs(client).keys() == {(source, False)}
    assert len(client.broker.services.moves) == 0


def names_of(files: Files, path: str) -> list[str]:
    return [entry.name for entry in files.entries(path) if entry.name.startswith(KEY.topic)]


def test_the_copy_of_a_deleted_topic_is_deleted() -> None:
    files = MemoryFiles()
    held = HeldWork()
    client = start(files, submit=held)
    create(client)
    produce(client, *(b"%d" % number * 1000 for number in range(500)))
    (source,) = place(client.broker)
    order(client, other(source))
    client.broker.tick(NOW_MS)
    client.ask(m.DeleteTopicsRequest(topic_names=[KEY.topic], timeout_ms=1000), 5)
    create(client)  # created again while a chore runs a step
    held.run_next()
    for _ in range(3):
        client.broker.tick(NOW_MS + 60_000)
    assert sorted(names_of(files, A) + names_of(files, B)) == [str(KEY)]
    assert values(client.broker) == []


def test_refused_moves_get_kafkas_errors() -> None:
    client = start(MemoryFiles())
    create(client)
    (source,) = place(client.broker)
    assert order(client, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert order(client, other(source), "unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert order(client, other(source), "x" * 249) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert order(client, source) == 0
    assert not client.broker.services.moves


def test_a_new_partition_is_created_in_the_directory_chosen_before() -> None:
    for path in (A, B):
        client = start(MemoryFiles())
        assert order(client, path) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create(client)
        assert place(client.broker) == [path]


def test_a_target_that_fails_leaves_the_partition_where_it_is() -> None:
    files = FaultyFiles(MemoryFiles())
    client = start(files)
    create(client)
    written = [b"%d" % number * 1000 for number in range(500)]
    produce(client, *written)
    (source,) = place(client.broker)
    if source == A:
        order(client, B)
        run_pending(client.broker)
    # From here on the other one, A, has the metadata log and works; B fails while it is copied to.
    client.broker.close(NOW_MS)
    client = start(files)
    if place(client.broker) == [B]:
        order(client, A)
        run_pending(client.broker)
    assert place(client.broker) == [A]
    order(client, B)
    files.fail("write", errno.EIO, path="-future")
    client.broker.tick(NOW_MS)
    client.broker.tick(NOW_MS)
    client.broker.tick(NOW_MS)
    assert not client.broker.services.moves
    assert client.broker.services.logs.directories[1].failure is not None
    assert values(client.broker) == written
    assert order(client, B) == ErrorCode.KAFKA_STORAGE_ERROR
    client.broker.close(NOW_MS)
    files.heal()
    client = start(files)
    run_pending(client.broker)
    assert place(client.broker) == [B]
    assert values(client.broker) == written


def test_the_rate_of_copying_is_bounded() -> None:
    elapsed_ms = 0
    client = start(MemoryFiles(), submit=lambda chore: run_now(chore, NOW_MS + elapsed_ms))
    create(client)
    produce(client, *(b"x" * 1_000_000 for _ in range(8)))
    request = m.IncrementalAlterConfigsRequest()
    change = request.AlterableConfig(name="replica.alter.log.dirs.io.max.bytes.per.second", value="100000")
    request.resources = [request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])]
    assert client.ask(request, 1).responses[0].error_code == 0
    (source,) = place(client.broker)
    order(client, other(source))
    while client.broker.services.moves:
        client.broker.tick(NOW_MS + elapsed_ms)
        elapsed_ms += 100
        assert elapsed_ms < 200_000
    assert elapsed_ms > 40_000  # at once it would be one step after the other
