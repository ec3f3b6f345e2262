"""Our log opens directories of Apache Kafka, after a clean stop and after a kill under load."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from tailrace.log.directories.log_directory import LoadReport, LogDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tailrace.log.watermarks import Isolation
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tests.support.golden import golden, golden_names
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_client import KafkaClient
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.our_directory import consume, open_golden, shut_down

pytestmark = pytest.mark.kafka

KAFKA = {
    "log.index.size.max.bytes": "8192",
    "log.index.interval.bytes": "1000",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
}
CONFIG = {"segment.index.bytes": "8192", "index.interval.bytes": "1000", "retention.ms": "-1"}
CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)  # zstd asks for a later version of Produce
# A megabyte is the smallest segment that Kafka allows; some 200 batches fill it.
TOPICS = {"load": {"segment.bytes": "1048576"}, "payments": {}, "audit": {}}
PARTITIONS = [
    TopicPartition("load", 0),
    TopicPartition("load", 1),
    TopicPartition("payments", 0),
    TopicPartition("audit", 0),
]


def config_of(topic: str) -> TopicConfig:
    compacted = {"cleanup.policy": "compact"} if topic.startswith("__") else {}
    return parse_topic_config({**CONFIG, **TOPICS.get(topic, {}), **compacted})


def open_directory(path: Path, now_ms: int) -> tuple[LogDirectory, LoadReport]:
    directory = LogDirectory(DiskFiles(), str(path), new_id=lambda: "0" * 32)
    report = directory.load(config_of, now_ms)
    assert report.failed == {}
    for log in directory.logs.values():
        log.advance_high_watermark(log.log_end_offset)
    return directory, report


def some_records(first: int, count: int) -> list[OracleRecord]:
    return [OracleRecord(key=b"key-%d" % n, value=b"value-%d" % n, timestamp=START_MS + n) for n in range(first, count)]


def fill(client: KafkaClient) -> None:
    for topic, config in TOPICS.items():
        client.create_topic(topic, 2 if topic == "load" else 1, config)
    client.transaction("payer-1", "payments", 0, some_records(0, 9), end="commit")
    client.transaction("payer-2", "payments", 0, some_records(9, 20), end="abort")
    client.produce("payments", 0, some_records(20, 24), config={"enable.idempotence": "true"})
    patient = {"transaction.timeout.ms": "600000"}  # no coordinator may abort it while the test runs
    client.transaction("payer-1", "payments", 0, some_records(24, 30), end="open", config=patient)
    client.produce("audit", 0, *(some_records(n, n + 4) for n in range(0, 40, 4)))
    client.delete_records("audit", 0, 22)


@contextmanager
def load_on(broker: KafkaBroker) -> Iterator[Callable[[int], None]]:
    """Run producers that send one batch after the other until the broker stops. Yield a function that waits for a
    number of batches."""
    sent = threading.Semaphore(0)

    def produce(partition: int) -> None:
        with suppress(OSError):
            for number in count():
                builder = BatchBuilder(codec=CODECS[number % 4])
                noise = random.Random(number)  # noise does not compress, so that a segment fills soon
                for n in range(10):
                    builder.append(START_MS + number, b"%d" % n, noise.randbytes(500))
                broker.produce("load", partition, builder.build())
                sent.release()

    threads = [threading.Thread(target=produce, args=(partition,), daemon=True) for partition in (0, 1)]
    for thread in threads:
        thread.start()

    def wait_for(batches: int) -> None:
        for _ in range(batches):
            assert sent.acquire(timeout=60), "the producers make no progress"

    yield wait_for
    for thread in threads:
        thread.join(60)


def content_of(folder: Path) -> dict[str, bytes]:
    """Return a partition's files, without the epoch that a broker adds at the log's end when it becomes
    leader again.
    """
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.name != file_names.LEADER_EPOCH_CHECKPOINT and file.suffix != ".broken"
    }


def fields(records: list[OracleRecord]) -> list[tuple[object, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value) for r in records]


def test_after_a_kill_under_load_kafka_and_tailrace_recover_the_same_log(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle, tmp_path: Path
) -> None:
    broker = kafka_broker(properties=KAFKA)
    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        fill(client)
        with load_on(broker) as wait_for:
            wait_for(500)
            broker.crash()
    ours = tmp_path / "ours"
    shutil.copytree(broker.data, ours)
    now_ms = int(max(path.stat().st_mtime for path in ours.rglob("*.log")) * 1000)
    directory, report = open_directory(ours, now_ms)
    assert not report.was_clean
    assert report.recoveries, "unflushed segments were scanned"
    assert len(directory.logs[PARTITIONS[0]].segments) >= 2

    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        for partition in PARTITIONS:
            log = directory.logs[partition]
            assert client.bounds(*partition) == (log.log_start_offset, log.log_end_offset)
            theirs = client.consume(*partition)
            mine = consume(log)
            assert len(mine) > 10
            assert [(r.offset, r.timestamp, r.key, r.value) for r in mine] == fields(theirs), partition
            committed = [r.offset for r in client.consume(*partition, isolation="read_committed")]
            assert [r.offset for r in consume(log, Isolation.READ_COMMITTED)] == committed, partition
    broker.stop()
    directory.close(now_ms)
    for partition in PARTITIONS:
        mine, theirs = content_of(ours / str(partition)), content_of(broker.data / str(partition))
        assert sorted(mine) == sorted(theirs), partition
        for name in mine:
            assert mine[name] == theirs[name], (partition, name)

    # Kafka has stopped cleanly by now, so the log is opened without a scan.
    directory, report = open_directory(broker.data, now_ms)
    assert report.was_clean
    assert report.recoveries == {}
    for partition in PARTITIONS:
        log = directory.logs[partition]
        log.flush(now_ms)
        log.close()
        assert content_of(broker.data / str(partition)) == content_of(ours / str(partition))
    directory.abandon()


CLEAN = [name for name in golden_names("partition") if golden(name).manifest["ended"] == "clean"]


@pytest.mark.parametrize(
    ("name", "clean"), [*((name, True) for name in CLEAN), *((name, False) for name in golden_names("partition"))]
)
def test_kafka_and_tailrace_leave_the_same_files_after_opening_and_closing_a_directory(
    name: str, clean: bool, log_oracle: LogOracle, tmp_path: Path
) -> None:
    """The directory is opened after a clean stop, and with a full scan as after a crash."""
    directory = golden(name)
    settings = {**directory.manifest["open"], "clean_shutdown": clean, "recovery_point": 0}
    log = open_golden(directory, directory.unpack(tmp_path / "ours") / "topic-0", **settings)
    shut_down(log, settings["now_ms"])
    log_oracle.now_ms = settings.pop("now_ms")
    log_oracle.open(directory.unpack(tmp_path / "kafka") / "topic-0", **settings).shut_down()
    mine, theirs = whole_content_of(tmp_path / "ours"), whole_content_of(tmp_path / "kafka")
    assert sorted(mine) == sorted(theirs)
    for file in mine:
        assert mine[file].hex(" ") == theirs[file].hex(" "), file


def whole_content_of(root: Path) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes()
        for file in (root / "topic-0").iterdir()
        if file.suffix not in (file_names.DELETED, ".broken")
    }
