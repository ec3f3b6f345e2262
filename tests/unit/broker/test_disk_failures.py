"""A full or failed disk: its directory goes offline, acknowledged records stay, other directories are not affected."""

from __future__ import annotations

import errno
from itertools import count
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.broker.storage.disk_failures import LogDirectoriesFailed
from tailrace.log.disk.files import Files
from tailrace.model.errors import ErrorCode
from tailrace.protocol import messages as m
from tests.support.batches import batch
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import SPACE, MemoryFiles
from tests.support.memory_node import NOW_MS, Client

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
FIRST, SECOND = "/first", "/second"


def start(files: Files, *paths: str) -> Client:
    ids = count(1_000_000)
    broker = open_broker(
        files,
        BrokerConfig.of(log_dirs=paths or [FIRST, SECOND], port=9092),
        now_ms=NOW_MS,
        new_id=lambda: next(ids).to_bytes(16, "big"),
        next_int=lambda limit: next(ids) % limit,
    )
    return Client(broker)


def create(client: Client, name: str, partitions: int = 2) -> int:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    (made,) = client.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics
    return int(made.error_code)


def produce(client: Client, name: str, partition: int, value: bytes = b"value") -> int:
    request = m.ProduceRequest(acks=-1, timeout_ms=1000)
    data = request.PartitionProduceData(index=partition, records=bytes(batch(value)))
    request.topic_data = [request.TopicProduceData(name=name, partition_data=[data])]
    return int(client.ask(request, 9).responses[0].partition_responses[0].error_code)


def fetch(client: Client, name: str, partition: int) -> tuple[int, bytes]:
    request = m.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1_000_000)
    wanted = request.FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1_000_000)
    request.topics = [request.FetchTopic(topic=name, partitions=[wanted])]
    answer = client.ask(request, 12).responses[0].partitions[0]
    return answer.error_code, bytes(answer.records or b"")


def place(broker: Broker, name: str) -> dict[str, int]:
    """Return the directory of each of a topic's two partitions."""
    return {
        one.path: key.partition for one in broker.services.logs.directories for key in one.logs if key.topic == name
    }


def leaders(client: Client, name: str) -> dict[int, int]:
    wanted = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=name)])
    (topic,) = client.ask(wanted, 9).topics
    return {one.partition_index: one.leader_id for one in topic.partitions}


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(MemoryFiles())


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failed_write_takes_only_its_directory_offline(files: FaultyFiles, code: int) -> None:
    client = start(files)
    create(client, "orders")
    places = place(client.broker, "orders")
    lost, kept = places[SECOND], places[FIRST]
    assert [produce(client, "orders", one) for one in (lost, kept)] == [0, 0]
    files.fail("write", code, path=SECOND)
    assert produce(client, "orders", lost) == STORAGE
    assert produce(client, "orders", kept) == 0
    assert fetch(client, "orders", lost)[0] == STORAGE
    assert fetch(client, "orders", kept)[0] == 0
    assert client.broker.next_deadline_ms() == 0
    client.broker.tick(NOW_MS)
    assert leaders(client, "orders") == {kept: 1, lost: -1}
    assert create(client, "later", 3) == 0  # in the other directory
    assert produce(client, "later", 2) == 0


def test_acknowledged_records_are_served_after_the_disk_is_repaired(files: FaultyFiles) -> None:
    client = start(files)
    create(client, "orders")
    lost = place(client.broker, "orders")[SECOND]
    assert produce(client, "orders", lost, b"kept") == 0
    files.fail("write", errno.EIO, path=SECOND)
    assert produce(client, "orders", lost, b"gone") == STORAGE
    client.broker.tick(NOW_MS)
    client.broker.close(NOW_MS)
    files.heal()
    client = start(files)
    code, records = fetch(client, "orders", lost)
    assert code == 0
    assert b"kept" in records
    assert b"gone" not in records
    assert leaders(client, "orders")[lost] == 1


def test_a_waiting_fetch_gets_kafka_storage_error_when_its_disk_fails(files: FaultyFiles) -> None:
    client = start(files)
    create(client, "orders")
    lost = place(client.broker, "orders")[SECOND]
    request = m.FetchRequest(replica_id=-1, max_wait_ms=10_000, min_bytes=1, max_bytes=1000)
    wanted = request.FetchPartition(partition=lost, fetch_offset=0, partition_max_bytes=1000)
    request.topics = [request.FetchTopic(topic="orders", partitions=[wanted])]
    assert client.send(request, 12) == []
    files.fail("write", errno.EIO, path=SECOND)
    other = Client(client.broker)
    other.context.connection_id = 2
    assert produce(other, "orders", lost) == STORAGE
    client.broker.tick(NOW_MS)
    (reply,) = client.broker.take_replies()
    assert client.decode(reply, 1, 12).responses[0].partitions[0].error_code == STORAGE


def test_failed_housekeeping_takes_its_directory_offline(files: FaultyFiles) -> None:
    client = start(files)
    create(client, "orders")
    kept = place(client.broker, "orders")[FIRST]
    files.fail("create", errno.EIO, path=f"{SECOND}/recovery-point")
    client.broker.tick(NOW_MS + 10_000_000)
    assert [one.path for one in client.broker.services.logs.online] == [FIRST]
    assert produce(client, "orders", kept) == 0


def test_a_failed_metadata_log_directory_stops_the_broker(files: FaultyFiles) -> None:
    client = start(files)
    create(client, "orders")
    files.fail("write", errno.EIO, path=FIRST)
    assert produce(client, "orders", place(client.broker, "orders")[FIRST]) == STORAGE
    with pytest.raises(LogDirectoriesFailed, match=FIRST):
        client.broker.tick(NOW_MS)


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_failed_write_to_the_metadata_log_refuses_the_change_and_stops_the_broker(
    files: FaultyFiles, operation: str
) -> None:
    client = start(files)
    create(client, "orders")
    before = client.broker.services.controller.image
    files.fail(operation, errno.ENOSPC, path="__cluster_metadata-0")
    (reply,) = client.send(m.UnregisterBrokerRequest(broker_id=1), 0)
    assert client.decode(reply, 64, 0).error_code == STORAGE
    topic = m.CreateTopicsRequest.CreatableTopic(name="more", num_partitions=1, replication_factor=1)
    (reply,) = client.send(m.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
    assert (reply.parts, reply.close) == (None, True)  # the response has no error field for the whole request
    assert client.broker.services.controller.image is before
    assert produce(client, "orders", 0) == 0  # until the broker stops
    assert client.broker.next_deadline_ms() == 0
    with pytest.raises(LogDirectoriesFailed, match=r"/first, which has the metadata log, has failed: .*No space left"):
        client.broker.tick(NOW_MS)


def test_a_disk_failure_that_cannot_be_written_to_the_metadata_log_stops_the_broker(files: FaultyFiles) -> None:
    client = start(files)
    create(client, "orders")
    files.fail("write", errno.EIO)
    assert produce(client, "orders", place(client.broker, "orders")[SECOND]) == STORAGE
    with pytest.raises(
        LogDirectoriesFailed, match="/first"
    ):  # the failure of the second directory could not be written there
        client.broker.tick(NOW_MS)


def test_logs_that_one_directory_cannot_create_are_created_in_another(files: FaultyFiles) -> None:
    client = start(files)
    files.fail("create", errno.ENOSPC, path=f"{SECOND}/orders")
    assert create(client, "orders", 4) == 0
    client.broker.tick(NOW_MS)
    assert len(client.broker.services.logs.directories[0].logs) == 4
    assert [produce(client, "orders", number) for number in range(4)] == [0] * 4


# Starting


def start_with_one_failed(files: FaultyFiles) -> tuple[Client, int, int]:
    client = start(files)
    create(client, "orders")
    places = place(client.broker, "orders")
    assert produce(client, "orders", places[SECOND], b"kept") == 0
    client.broker.close(NOW_MS)
    files.fail("entries", errno.EIO, path=SECOND)
    return start(files), places[FIRST], places[SECOND]


def test_a_directory_that_cannot_be_read_at_the_start_is_offline(files: FaultyFiles) -> None:
    client, kept, lost = start_with_one_failed(files)
    assert produce(client, "orders", kept) == 0
    assert produce(client, "orders", lost) == STORAGE
    assert place(client.broker, "orders") == {FIRST: kept}  # the partition is not created again in another directory
    assert create(client, "later") == 0
    client.broker.close(NOW_MS)
    files.heal()
    assert b"kept" in fetch(start(files), "orders", lost)[1]


def test_a_partition_that_cannot_be_opened_is_offline_alone(files: FaultyFiles) -> None:
    client = start(files, FIRST)
    create(client, "orders")
    assert [produce(client, "orders", number) for number in (0, 1)] == [0, 0]
    client.broker.close(NOW_MS)
    before = files.files.tree(f"{FIRST}/orders-1")  # type: ignore[attr-defined]
    files.fail("stat", errno.EIO, path="orders-1/")
    client = start(files, FIRST)
    assert produce(client, "orders", 0) == 0
    assert produce(client, "orders", 1) == STORAGE
    client.broker.close(NOW_MS)
    files.heal()
    assert files.files.tree(f"{FIRST}/orders-1") == before  # type: ignore[attr-defined]
    assert fetch(start(files, FIRST), "orders", 1)[0] == 0


def test_a_broker_without_usable_directories_does_not_start(files: FaultyFiles) -> None:
    start(files).broker.close(NOW_MS)
    files.fail("entries", errno.EIO)
    with pytest.raises(LogDirectoriesFailed, match="metadata log"):
        start(files)


# DescribeLogDirs


def described(client: Client) -> dict[str, Any]:
    return {one.log_dir: one for one in client.ask(m.DescribeLogDirsRequest(topics=None), 4).results}


def test_describe_log_dirs_returns_total_and_usable_bytes(files: FaultyFiles) -> None:
    reported = described(start(files))
    assert [(one.total_bytes, one.usable_bytes, one.error_code) for one in reported.values()] == [(*SPACE, 0)] * 2


def test_describe_log_dirs_returns_kafka_storage_error_for_a_failed_directory(files: FaultyFiles) -> None:
    client, _, _ = start_with_one_failed(files)
    reported = described(client)
    assert (reported[SECOND].error_code, reported[SECOND].topics, reported[SECOND].total_bytes) == (STORAGE, [], -1)
    assert reported[FIRST].error_code == 0
