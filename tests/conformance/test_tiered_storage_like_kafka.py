"""One directory and one remote store, used by Apache Kafka with LocalTieredStorage and by Tailrace in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.protocol.messages import ListOffsetsRequest
from tests.support.kafka_broker import KafkaBroker
from tests.support.local_tiered_storage import CLASS, tiered_storage_jar
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.raw_client import RawClient
from tests.support.tiered_node import TieredNode, keys_of

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPIC = "orders"
# A segment has two batches, because its index has room for two entries.
CONFIG = {
    "remote.storage.enable": "true",
    "index.interval.bytes": "1",
    "segment.index.bytes": "24",
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}
PROPERTIES = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": CLASS,
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.min.isr": "1",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "log.cleaner.enable": "false",
}
STARTS = (-2, -4, -5, -6, -1)


class Tier:
    """A directory and a remote store, and both brokers to run on them."""

    def __init__(self, kafka: Callable[..., KafkaBroker], directory: Path) -> None:
        self.remote = directory / "remote"
        self.remote.mkdir()
        properties = {
            **PROPERTIES,
            "rsm.config.dir": str(self.remote),
            "rsm.config.delete.on.close": "false",
        }
        self.kafka = kafka(properties=properties, classes=tiered_storage_jar())
        self._records = 0

    def records(self, count: int) -> list[list[OracleRecord]]:
        """Return batches of one record each; the keys count the records."""
        first, self._records = self._records, self._records + count
        return [
            [OracleRecord(key=str(number).encode(), value=b"v" * 50, timestamp=1_000_000 + number * 1_000)]
            for number in range(first, first + count)
        ]

    def ours(self) -> TieredNode:
        static = {
            "log.dirs": str(self.kafka.data),
            "node.id": self.kafka.properties["node.id"],
            "rsm.config.dir": str(self.remote),
        }
        node = TieredNode(DiskFiles(), static, now_ms=int(time.time() * 1_000))
        node.tick(100)
        return node

    def remote_files(self) -> list[str]:
        """Return the remote files by the start offset of their segment."""
        return sorted((str(path.relative_to(self.remote)) for path in self.remote.rglob("*.*")), key=_start_offset)


def _start_offset(name: str) -> tuple[str, str]:
    return name.rpartition("/")[2][:20], name


def eventually(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def offsets(
    ask: Callable[[ListOffsetsRequest, int], Any], starts: Sequence[int] = (*STARTS, 1_005_500, 1_009_500)
) -> dict[int, tuple[int, int]]:
    """Return the offset and the epoch of each bound, and of two times."""
    found = {}
    for start in starts:
        part = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=start)
        topics = [ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[part])]
        answer = ask(ListOffsetsRequest(replica_id=-1, topics=topics, timeout_ms=30_000), 11).topics[0].partitions[0]
        assert answer.error_code == 0, start
        found[start] = (answer.offset, answer.leader_epoch)
    return found


def offsets_at(broker: KafkaBroker) -> dict[int, tuple[int, int]]:
    with RawClient(broker.bootstrap) as client:
        return offsets(client.ask)


def offset_at(broker: KafkaBroker, start: int) -> int:
    with RawClient(broker.bootstrap) as client:
        return offsets(client.ask, [start])[start][0]


def without_epochs(found: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Return the offsets. A restart begins a new leader epoch."""
    return {start: offset for start, (offset, _) in found.items()}


def read_all(node: TieredNode) -> list[int]:
    found: list[int] = []
    end, start = node.log().high_watermark, node.log().log_start_offset
    while start < end:
        answer = node.fetch(start)
        assert answer.error_code == 0
        keys = [key for key in keys_of(answer.records) if key >= start]
        assert keys, start
        found += keys
        start = keys[-1] + 1
    return found


def test_kafka_and_tailrace_take_turns_on_one_directory_and_one_store(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle, tmp_path: Path
) -> None:
    tier = Tier(kafka_broker, tmp_path)
    kafka = tier.kafka
    kafka.start()
    with log_oracle.connect(kafka.bootstrap) as client:
        client.create_topic(TOPIC, config=CONFIG)
        client.produce(TOPIC, 0, *tier.records(11))
        eventually(lambda: offset_at(kafka, -4) == 10, kafka.log_tail())
        seen = without_epochs(offsets_at(kafka))
    kafka.stop()
    by_kafka = tier.remote_files()

    node = tier.ours()
    assert node.log().log_start_offset == 0
    assert node.log().local_start_offset == 10
    node.run_tasks()
    assert tier.remote_files()[: len(by_kafka)] == by_kafka
    assert read_all(node) == list(range(11))
    assert without_epochs(offsets(node.client.ask)) == seen
    node.produce(10, b"w" * 50)
    node.run_tasks()
    local_start = node.log().local_start_offset
    assert local_start > 15
    assert read_all(node) == list(range(21))
    expected = without_epochs(offsets(node.client.ask))
    node.broker.close(node.now_ms)
    together = tier.remote_files()

    kafka.start()
    with log_oracle.connect(kafka.bootstrap) as client:
        eventually(lambda: offset_at(kafka, -5) == local_start - 1, kafka.log_tail())
        assert [int(record.key or b"") for record in client.consume(TOPIC, 0)] == list(range(21))
        assert without_epochs(offsets_at(kafka)) == expected
    kafka.stop()
    assert tier.remote_files() == together, "nothing is copied twice"
