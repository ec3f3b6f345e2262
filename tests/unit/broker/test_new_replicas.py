"""New partitions whose logs chores create: they are served when their logs exist, as the metadata is then."""

from __future__ import annotations

import errno
from itertools import count

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.broker.storage.new_replicas import RESPONSE_WAIT_MS
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.waiting.chore import Chore
from tests.support.batches import batch
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client

A, B = "/a", "/b"


class Bench:
    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.waiting: list[Chore] = []
        ids = count(1_000_000)
        broker = open_broker(
            self.files,
            BrokerConfig.of(log_dirs=[A, B], port=9092),
            now_ms=NOW_MS,
            new_id=lambda: next(ids).to_bytes(16, "big"),
            next_int=lambda limit: 0,
            submit=self.waiting.append,
        )
        self.broker = broker
        self.client = Client(broker)

    def create(self, name: str, partitions: int = 1) -> int:
        """Send CreateTopics. Return the number of immediate replies."""
        topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        return len(self.client.send(m.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5))

    def delete(self, name: str) -> None:
        assert (
            self.client.ask(m.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5).responses[0].error_code == 0
        )

    def work(self) -> int:
        """Run the waiting chores. Return the number of replies."""
        while self.waiting:
            work = self.waiting.pop(0)
            work.apply(work.run(), NOW_MS)
        return len(self.broker.take_replies())

    def produce(self, name: str) -> int:
        data = m.ProduceRequest.PartitionProduceData(index=0, records=memoryview(batch(b"x")))
        request = m.ProduceRequest(acks=1, timeout_ms=1000)
        request.topic_data = [m.ProduceRequest.TopicProduceData(name=name, partition_data=[data])]
        code: int = self.client.ask(request, 9).responses[0].partition_responses[0].error_code
        return code

    def folders(self) -> list[str]:
        names = [entry.name for path in (A, B) for entry in self.files.entries(path) if entry.is_directory]
        return sorted(name for name in names if not name.startswith("__"))


def test_create_topics_responds_when_the_logs_exist() -> None:
    bench = Bench()
    assert bench.create("orders", 3) == 0
    assert bench.produce("orders") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.work() == 1
    assert bench.produce("orders") == ErrorCode.NONE
    assert bench.folders() == ["orders-0", "orders-1", "orders-2"]
    for number in range(3):
        log = bench.broker.services.partitions.find(TopicPartition("orders", number)).log
        assert (len(log.epochs.entries), log.epochs.is_written) == (1, True)


def test_a_topic_deleted_before_its_logs_are_created_has_no_logs() -> None:
    bench = Bench()
    bench.create("orders")
    bench.delete("orders")
    assert bench.work() == 1
    assert len(bench.broker.services.partitions) == 0
    assert [name.endswith("-delete") for name in bench.folders()] == [True]


def test_a_topic_recreated_before_its_logs_exist_gets_a_log_with_the_new_id() -> None:
    bench = Bench()
    bench.create("orders")
    bench.delete("orders")
    assert bench.create("orders") == 0
    assert bench.work() == 2
    assert bench.produce("orders") == ErrorCode.NONE
    log = bench.broker.services.partitions.find(TopicPartition("orders", 0)).log
    assert log.topic_id == bench.broker.services.controller.image.topics["orders"].topic_id


def test_logs_are_created_in_another_directory_if_a_disk_fails_meanwhile() -> None:
    bench = Bench()
    bench.create("orders", 4)
    failing = bench.broker.services.logs.directories[1]
    assert bench.broker.services.logs.online == bench.broker.services.logs.directories
    bench.broker.services.logs.on_failure(failing, OSError(errno.EIO, "broken"))
    assert bench.work() == 1
    hosted = [
        bench.broker.services.partitions.find(TopicPartition("orders", number)).log.directory for number in range(4)
    ]
    assert {path.partition("/orders")[0] for path in hosted} == {A}


def test_every_find_coordinator_is_answered_when_the_coordinators_logs_are_there() -> None:
    bench = Bench()
    first, second = Client(bench.broker, connection_id=1), Client(bench.broker, connection_id=2)
    assert first.send(m.FindCoordinatorRequest(key="g"), 3) == []
    assert second.send(m.FindCoordinatorRequest(key="g"), 3) == []  # the topic exists, its logs do not
    assert bench.work() == 2
    assert first.ask(m.FindCoordinatorRequest(key="g"), 3).error_code == ErrorCode.NONE
    beat = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert first.ask(beat, 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID  # not NOT_COORDINATOR


def test_a_small_topic_does_not_wait_for_the_logs_of_a_large_one() -> None:
    bench = Bench()
    assert bench.create("large", 1_000) == 0
    assert bench.create("small") == 0
    replies = 0
    while not replies:
        work = bench.waiting.pop(0)
        work.apply(work.run(), NOW_MS)
        replies = len(bench.broker.take_replies())
    assert bench.produce("small") == ErrorCode.NONE
    assert len([name for name in bench.folders() if name.startswith("large")]) < 300
    assert bench.work() == 1  # the response for the large topic


def test_the_response_to_a_large_creation_waits_five_seconds_at_most() -> None:
    bench = Bench()
    assert bench.create("large", 1_000) == 0
    bench.broker.tick(NOW_MS + RESPONSE_WAIT_MS - 1)
    assert bench.broker.take_replies() == []
    bench.broker.tick(NOW_MS + RESPONSE_WAIT_MS)
    assert len(bench.broker.take_replies()) == 1
    assert bench.produce("large") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.work() == 0  # no second response
    assert bench.produce("large") == ErrorCode.NONE
