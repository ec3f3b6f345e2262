"""A full or removed log directory under Kafka and under Tailrace: the same requests get the same responses.

A full disk is a tmpfs of a few megabytes that one process sees. Its tests are skipped where the system does not permit
this.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.protocol import messages as m
from tests.support.api_twins import KafkaSide
from tests.support.batches import batch
from tests.support.kafka_broker import KafkaBroker
from tests.support.small_disk import on_small_disk, why_no_small_disk
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka
needs_small_disk = pytest.mark.skipif(why_no_small_disk() is not None, reason=f"no tmpfs: {why_no_small_disk()}")
PATIENCE_S = 30.0
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "200",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
}
Broker = KafkaBroker | TailraceProcess


class Side:
    def __init__(self, broker: Broker, root: Path) -> None:
        self.broker = broker
        self.root = root
        broker.start()
        self.wire = KafkaSide(broker.port)

    def create(self, topic: str, place: str | None = None, partitions: int = 1) -> int | None:
        if place is not None:
            order = m.AlterReplicaLogDirsRequest()
            wanted = [order.AlterReplicaLogDirTopic(name=topic, partitions=[0])]
            order.dirs = [order.AlterReplicaLogDir(path=str(self.root / place), topics=wanted)]
            self.wire.ask(order, 2)
        one = m.CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        answer = self.wire.ask(m.CreateTopicsRequest(topics=[one], timeout_ms=5_000), 5)
        if place is not None:
            self.until(lambda: any((topic, 0) in partitions for _, partitions in self.directories().values()))
        return None if answer is None else int(answer.topics[0].error_code)

    def produce(self, topic: str, value: bytes = b"value") -> int:
        request = m.ProduceRequest(acks=-1, timeout_ms=3_000)
        data = request.PartitionProduceData(index=0, records=bytes(batch(value)))
        request.topic_data = [request.TopicProduceData(name=topic, partition_data=[data])]
        return int(self.wire.ask(request, 9).responses[0].partition_responses[0].error_code)

    def fetch(self, topic: str) -> int:
        request = m.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=500)
        wanted = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=500)
        request.topics = [request.FetchTopic(topic=topic, partitions=[wanted])]
        return int(self.wire.ask(request, 12).responses[0].partitions[0].error_code)

    def others(self, topic: str) -> dict[str, int]:
        """Return the error codes of other APIs that need the partition's log."""
        listed = m.ListOffsetsRequest(replica_id=-1)
        listed.topics = [listed.ListOffsetsTopic(name=topic, partitions=[listed.ListOffsetsPartition(timestamp=-1)])]
        deleted = m.DeleteRecordsRequest(timeout_ms=1_000)
        deleted.topics = [deleted.DeleteRecordsTopic(name=topic, partitions=[deleted.DeleteRecordsPartition(offset=1)])]
        producers = m.DescribeProducersRequest()
        producers.topics = [producers.TopicRequest(name=topic, partition_indexes=[0])]
        epochs = m.OffsetForLeaderEpochRequest(replica_id=-1)
        wanted = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
        epochs.topics = [epochs.OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
        return {
            "ListOffsets": self.wire.ask(listed, 6).topics[0].partitions[0].error_code,
            "DeleteRecords": self.wire.ask(deleted, 2).topics[0].partitions[0].error_code,
            "DescribeProducers": self.wire.ask(producers, 0).topics[0].partitions[0].error_code,
            "OffsetForLeaderEpoch": self.wire.ask(epochs, 4).topics[0].partitions[0].error_code,
        }

    def metadata(self) -> dict[str, list[Any]]:
        answer = self.wire.ask(m.MetadataRequest(topics=None), 12)
        return {
            topic.name: [
                (one.error_code, one.leader_id, one.isr_nodes, one.offline_replicas) for one in topic.partitions
            ]
            for topic in answer.topics
        }

    def directories(self) -> dict[str, tuple[int, list[tuple[str, int]]]]:
        answer = self.wire.ask(m.DescribeLogDirsRequest(topics=None), 4)
        return {
            Path(one.log_dir).name: (
                one.error_code,
                sorted(
                    (topic.name, partition.partition_index) for topic in one.topics for partition in topic.partitions
                ),
            )
            for one in answer.results
        }

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "the condition was not met in time"
            time.sleep(0.05)

    def story(self, break_it: Callable[[Side], Any]) -> list[Any]:
        """Create one topic in the first directory and two in the second, break the second, and return the responses to
        clients.
        """
        self.create("kept", "first")
        self.create("hit", "second")
        self.create("lost", "second")
        responses = [self.produce("lost"), self.produce("kept"), break_it(self)]
        self.until(lambda: self.directories()["second"][0] != 0)
        self.until(lambda: self.metadata()["lost"][0][1] == -1)
        responses += [self.produce(topic) for topic in ("kept", "hit", "lost")]
        responses += [self.fetch(topic) for topic in ("kept", "hit", "lost")]
        responses += [self.others(topic) for topic in ("kept", "lost")]
        responses += [self.metadata(), self.directories()]
        responses.append(self.create("new"))
        self.until(lambda: ("new", 0) in self.directories()["first"][1])
        responses.append(self.produce("new"))
        assert self.broker.process is not None
        responses.append(self.broker.process.poll())
        return responses


@pytest.fixture
def sides(kafka_broker: Callable[..., KafkaBroker], tmp_path: Path) -> Iterator[Callable[..., Iterator[Side]]]:
    made: list[TailraceProcess] = []

    def make(small: str | None = None, size: str = "6m") -> Iterator[Side]:
        for name in ("theirs", "ours"):
            root = tmp_path / name
            wrapper = [] if small is None else on_small_disk(root / small, size)
            broker: Broker
            if name == "theirs":
                dirs = f"{root / 'first'},{root / 'second'}"
                properties = {"log.dirs": dirs, "broker.heartbeat.interval.ms": "200", **SETTINGS}
                broker = kafka_broker(root / "kafka", properties=properties, wrapper=wrapper)
            else:
                options = [word for key, text in SETTINGS.items() for word in ("-o", f"{key}={text}")]
                broker = TailraceProcess(root / "first", "--data", str(root / "second"), *options, wrapper=wrapper)
                made.append(broker)
            yield Side(broker, root)

    yield make
    for one in made:
        one.__exit__(None, None, None)


def fill(side: Side) -> set[int]:
    """Produce until the disk is full, and return the error codes."""
    codes = {0}
    for _ in range(200):
        codes.add(side.produce("hit", bytes(100_000)))
        if len(codes) > 1:
            return codes
    raise AssertionError("the disk is never full")


@needs_small_disk
def test_a_full_disk_gets_the_same_responses(sides: Callable[..., Iterator[Side]]) -> None:
    theirs, ours = (side.story(fill) for side in sides("second"))
    assert ours == theirs
    assert ours[2] == {0, 56}


def remove(side: Side) -> None:
    """Remove a log directory. The broker may write a checkpoint meanwhile, so this may need more than one attempt."""
    deadline = time.monotonic() + 10
    while (side.root / "second").exists():
        assert time.monotonic() < deadline
        shutil.rmtree(side.root / "second", ignore_errors=True)


def test_a_removed_directory_gets_the_same_responses(sides: Callable[..., Iterator[Side]]) -> None:
    theirs, ours = (side.story(remove) for side in sides())
    assert ours == theirs


@pytest.mark.slow
@needs_small_disk
def test_a_full_disk_under_the_metadata_log_ends_the_broker(sides: Callable[..., Iterator[Side]]) -> None:
    statuses = []
    for side in sides("first", "3m"):
        process = side.broker.process
        assert process is not None
        for number in range(400):
            if process.poll() is not None or side.create(f"topic-{number}", partitions=40) != 0:
                break
        statuses.append(process.wait(PATIENCE_S))
        if isinstance(side.broker, TailraceProcess):
            words = side.broker.errors
            assert "which has the metadata log, has failed: [Errno 28] No space left on device" in words
            assert "Traceback" not in words
    assert statuses == [1, 1]
