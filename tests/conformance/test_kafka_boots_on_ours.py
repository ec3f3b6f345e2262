"""Apache Kafka starts on directories that our log wrote, and serves every record like its own."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.log.watermarks import Isolation
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_client import KafkaClient
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.our_directory import consume, lookup
from tests.support.our_workload import KINDS, TOPIC_CONFIGS, Writer

pytestmark = pytest.mark.kafka

# The broker's clock is the real one, and producers that are idle for a day expire.
NOW_MS = int(time.time() * 1000)

# Kafka's topics have segments of a gigabyte; ours are smaller, which makes no difference to Kafka.
OURS = {"internal.segment.bytes": "3000", "index.interval.bytes": "300"}
KAFKA = {
    "log.index.size.max.bytes": "4096",
    "log.index.interval.bytes": "300",
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
}
CONFIG = {"segment.index.bytes": "4096", "retention.ms": "-1"}


def config_of(topic: str) -> TopicConfig:
    return parse_topic_config({**OURS, **CONFIG, **TOPIC_CONFIGS.get(topic, {})})


def open_directories(paths: list[Path]) -> tuple[LogDirectories, list[int]]:
    """Return our log directories, with each log's high watermark at its end, and the broker epochs of the last clean
    stop.
    """
    directories, epochs = [], []
    for path in paths:
        directory = LogDirectory(DiskFiles(), str(path), new_id=lambda: "0" * 32)
        report = directory.load(config_of, NOW_MS)
        assert report.failed == {}
        epochs.append(report.previous_broker_epoch)
        directories.append(directory)
        for log in directory.logs.values():
            log.advance_high_watermark(log.log_end_offset)
    both = LogDirectories(directories)
    both.check_unique()
    return both, epochs


def log_of(directories: LogDirectories, topic: str) -> PartitionLog:
    log = directories.get(TopicPartition(topic, 0))
    assert log is not None, topic
    return log


def create_topics(broker: KafkaBroker, oracle: LogOracle) -> None:
    """Let Kafka format the directories and create the topics, without records."""
    broker.start()
    with oracle.connect(broker.bootstrap) as client:
        for topic in KINDS:
            client.create_topic(topic, 1, TOPIC_CONFIGS.get(topic))
    broker.stop()


def fill(directories: LogDirectories) -> None:
    for topic, write in KINDS.items():
        write(Writer(log_of(directories, topic), NOW_MS))


def segment_files(paths: list[Path], *, sealed: bool = False) -> list[Path]:
    """Return the segment files of all topics; with `sealed`, without those of the last segment."""
    found = []
    for folder in (folder for path in paths for folder in path.iterdir() if folder.name[:-2] in KINDS):
        active = max(folder.glob("*.log")).stem
        found += [
            file
            for file in folder.iterdir()
            if file.stem.isdigit()
            and file.suffix != file_names.PRODUCER_SNAPSHOT
            and not (sealed and file.stem == active)
        ]
    return sorted(found)


def assert_index_sanity(oracle: LogOracle, paths: list[Path]) -> None:
    kinds = (file_names.OFFSET_INDEX, file_names.TIME_INDEX)
    indexes = [file for file in segment_files(paths) if file.suffix in kinds and file.stat().st_size]
    assert len(indexes) > 2 * len(KINDS)
    output = oracle.index_sanity_check(*indexes)
    assert output.count("passed sanity check") == len(indexes), output


def fields(records: list[OracleRecord]) -> list[tuple[object, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]


def our_fields(log: PartitionLog, isolation: Isolation) -> list[tuple[object, ...]]:
    return [
        (r.offset, r.timestamp, r.key, r.value, tuple((header.key.encode(), header.value) for header in r.headers))
        for r in consume(log, isolation)
    ]


def assert_consumed(client: KafkaClient, directories: LogDirectories) -> None:
    """Check that the Java consumer reads the same records as our log, at both isolation levels."""
    for topic in KINDS:
        log = log_of(directories, topic)
        assert client.bounds(topic, 0) == (log.log_start_offset, log.log_end_offset), topic
        assert client.bounds(topic, 0, "read_committed")[1] == log.last_stable_offset, topic
        everything = our_fields(log, Isolation.READ_UNCOMMITTED)
        assert fields(client.consume(topic, 0)) == everything, topic
        committed = our_fields(log, Isolation.READ_COMMITTED)
        assert fields(client.consume(topic, 0, isolation="read_committed")) == committed, topic
        times = sorted({record[1] for record in everything})  # type: ignore[type-var]
        for moment in [times[0] - 1, *times[:: len(times) // 4], times[-1], times[-1] + 1]:  # type: ignore[operator]
            found = client.offset_for_time(topic, 0, moment)
            answer = None if found is None else [found.timestamp, found.offset, found.leader_epoch]
            assert answer == lookup(log, moment), (topic, moment)


def assert_nothing_set_apart(paths: list[Path]) -> None:
    names = [entry.name for path in paths for entry in path.iterdir()]
    assert [name for name in names if name.endswith((file_names.STRAY_FOLDER, file_names.DELETE_FOLDER))] == []


def test_kafka_serves_records_from_our_two_log_directories_and_appends_to_them(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle, tmp_path: Path
) -> None:
    paths = [tmp_path / "first", tmp_path / "second"]
    broker = kafka_broker(properties={**KAFKA, "log.dirs": ",".join(map(str, paths))})
    create_topics(broker, log_oracle)
    directories, epochs = open_directories(paths)
    assert all(directory.logs for directory in directories.directories), "both log directories hold partitions"
    fill(directories)
    for directory, epoch in zip(directories.directories, epochs, strict=True):
        directory.close(NOW_MS, broker_epoch=epoch)
    assert_index_sanity(log_oracle, paths)
    times = {file: file.stat().st_mtime_ns for file in segment_files(paths, sealed=True)}
    content = {file: file.read_bytes() for file in segment_files(paths)}

    output_before = len(broker.log_tail(10_000))
    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        assert_consumed(client, directories)
        ends = {topic: log_of(directories, topic).log_end_offset for topic in KINDS}
        for topic in ("plain", "append-time", "recompressed", "deleted", "truncated"):
            offsets = client.produce(topic, 0, [OracleRecord(key=b"next", value=b"one")])
            assert offsets == [[ends[topic]]], topic
        assert_knows_the_producers(broker, log_of(directories, "idempotent"))
    output = broker.log_tail(10_000)[output_before:]
    assert not re.search("(?i)recover|corrupt|rebuil|stray|unclean", output), output
    assert {file: file.stat().st_mtime_ns for file in times} == times, "sealed segments were not touched: no recovery"
    broker.stop()

    assert_nothing_set_apart(paths)
    for file, data in content.items():
        assert file.read_bytes().startswith(data), f"{file}: Kafka only ever added to it"
    again, _ = open_directories(paths)
    for topic in ("plain", "append-time", "recompressed", "deleted", "truncated"):
        assert consume(log_of(again, topic))[-1].offset == ends[topic]
    for directory in again.directories:
        directory.abandon()


def assert_knows_the_producers(broker: KafkaBroker, log: PartitionLog) -> None:
    """Check that Kafka uses our producer snapshot: a retry is recognised, a gap is refused, the next sequence is
    accepted.
    """
    writer = Writer(log, NOW_MS)
    state = log.producers.producers[1001]
    known = state.batches[-1]
    end = log.log_end_offset
    retried = writer.batch(3, producer_id=1001, sequence=known.first_sequence)
    assert broker.produce("idempotent", 0, retried) == known.first_offset
    with pytest.raises(AssertionError, match="error 45"):  # OUT_OF_ORDER_SEQUENCE_NUMBER
        broker.produce("idempotent", 0, writer.batch(1, producer_id=1001, sequence=state.last_sequence + 5))
    assert broker.produce("idempotent", 0, writer.batch(2, producer_id=1001, sequence=state.last_sequence + 1)) == end


def test_after_our_unclean_stop_kafka_recovers_the_same_records_as_we_do(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle, tmp_path: Path
) -> None:
    broker = kafka_broker(properties=KAFKA)
    create_topics(broker, log_oracle)
    directories, _ = open_directories([broker.data])
    fill(directories)
    directories.directories[0].checkpoint()
    for topic in KINDS:
        log_of(directories, topic).flush(NOW_MS)
        for _ in range(5):
            writer = Writer(log_of(directories, topic), NOW_MS)
            writer.append(writer.batch(4, keyed=topic == "compacted"))
    directories.directories[0].abandon()
    tear(broker.data, "plain", -25)
    tear(broker.data, "append-time", 0, more=bytes(700))
    tear(broker.data, "transactions", -3)
    (max((broker.data / "recompressed-0").glob("*.index"))).unlink()
    ours = tmp_path / "ours"
    shutil.copytree(broker.data, ours)

    recovered, _ = open_directories([ours])
    bounds = {
        topic: (log_of(recovered, topic).log_start_offset, log_of(recovered, topic).log_end_offset) for topic in KINDS
    }
    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        assert {topic: client.bounds(topic, 0) for topic in KINDS} == bounds
        assert_consumed(client, recovered)
    broker.stop()
    recovered.directories[0].close(NOW_MS)
    assert_same_partitions(ours, broker.data)
    assert_nothing_set_apart([broker.data])


def tear(data: Path, topic: str, by: int, more: bytes = b"") -> None:
    """Cut the last bytes of a topic's log, or append part of a later write."""
    path = max((data / f"{topic}-0").glob("*.log"))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) + by] + more)


def assert_same_partitions(ours: Path, theirs: Path) -> None:
    for topic in KINDS:
        mine, kafkas = content_of(ours / f"{topic}-0"), content_of(theirs / f"{topic}-0")
        assert sorted(mine) == sorted(kafkas), topic
        for name in mine:
            assert mine[name].hex(" ") == kafkas[name].hex(" "), (topic, name)


def content_of(folder: Path) -> dict[str, bytes]:
    """Return a partition's files, without the epoch that a broker adds at the log's end when it becomes
    leader again.
    """
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.name != file_names.LEADER_EPOCH_CHECKPOINT and file.suffix not in (file_names.DELETED, ".broken")
    }
