"""A whole broker's directory, left by a clean stop and by a kill: we serve what the Java consumer was served."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import DiskFiles
from tailrace.log.watermarks import Isolation
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.golden import golden, golden_names
from tests.support.golden_broker import PROPERTIES
from tests.support.log_oracle import START_MS
from tests.support.our_directory import consume, lookup, plain_record

NOW_MS = START_MS + 10_000_000
BROKER = {
    "segment.index.bytes": PROPERTIES["log.index.size.max.bytes"],
    "index.interval.bytes": PROPERTIES["log.index.interval.bytes"],
}
TOPICS = {
    "events": {"message.timestamp.type": "LogAppendTime"},
    "users": {"cleanup.policy": "compact", "segment.ms": "300"},
}
CHECKPOINTS = (
    file_names.RECOVERY_POINT_CHECKPOINT,
    file_names.HIGH_WATERMARK_CHECKPOINT,
    file_names.LOG_START_CHECKPOINT,
    file_names.CLEANER_CHECKPOINT,
)


def config_of(topic: str) -> TopicConfig:
    return parse_topic_config({**BROKER, **TOPICS.get(topic, {})})


def numbered_ids() -> Callable[[], str]:
    numbers = count()
    return lambda: f"{next(numbers):032x}"


def unpack(name: str, tmp_path: Path) -> tuple[LogDirectory, dict[str, Any], Path]:
    path = golden(name).unpack(tmp_path / "data")
    return LogDirectory(DiskFiles(), str(path), new_id=numbered_ids()), golden(name).manifest, path


def assert_serves_as_kafka(directory: LogDirectory, manifest: dict[str, Any]) -> None:
    for expected in manifest["partitions"]:
        partition = TopicPartition(expected["topic"], expected["partition"])
        log = directory.logs[partition]
        log.advance_high_watermark(log.log_end_offset)
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset) == (
            expected["start_offset"],
            expected["end_offset"],
            expected["stable_offset"],
        ), partition
        assert [plain_record(record) for record in consume(log)] == expected["records"], partition
        committed = [record.offset for record in consume(log, Isolation.READ_COMMITTED)]
        assert committed == expected["committed"], partition
        for time, answer in expected["times"]:
            assert lookup(log, time) == answer, (partition, time)


def lines(path: Path) -> list[str]:
    """Return a checkpoint's version and count, then its entries sorted: their order has no meaning."""
    version, number, *entries = path.read_text().splitlines()
    return [version, number, *sorted(entries)]


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_every_partition_is_served_as_the_java_consumer_saw_it(name: str, tmp_path: Path) -> None:
    directory, manifest, path = unpack(name, tmp_path)
    report = directory.load(config_of, NOW_MS)
    assert report.failed == {}
    assert report.was_clean == (manifest["ended"] == "clean")
    assert not (path / file_names.CLEAN_SHUTDOWN).exists(), "a crash from here on is an unclean stop"
    assert_serves_as_kafka(directory, manifest)
    directory.abandon()


def test_closing_a_clean_directory_writes_the_checkpoints_that_kafka_wrote(tmp_path: Path) -> None:
    directory, _, path = unpack("broker-clean", tmp_path)
    theirs = golden("broker-clean").unpack(tmp_path / "kafka")
    report = directory.load(config_of, NOW_MS)
    assert report.recoveries == {}, "after a clean stop nothing is scanned"
    assert report.previous_broker_epoch == 13
    for partition, log in directory.logs.items():
        log.advance_high_watermark(directory.high_watermarks[partition])
    directory.close(NOW_MS, broker_epoch=13)
    assert (path / file_names.CLEAN_SHUTDOWN).read_bytes() == (theirs / file_names.CLEAN_SHUTDOWN).read_bytes()
    for name in CHECKPOINTS:
        assert lines(path / name) == lines(theirs / name), name
    for partition in directory.logs:
        mine = {file.name: file.read_bytes() for file in (path / str(partition)).iterdir()}
        before = {
            file.name: file.read_bytes()
            for file in (theirs / str(partition)).iterdir()
            if file.suffix != file_names.DELETED
        }
        assert mine == before, partition


def test_only_unflushed_segments_are_scanned_after_a_kill(tmp_path: Path) -> None:
    directory, _, path = unpack("broker-crashed", tmp_path)
    report = directory.load(config_of, NOW_MS)
    assert sorted(map(str, report.recoveries)) == sorted(map(str, directory.logs))
    payments = report.recoveries[TopicPartition("payments", 0)]
    assert (payments.segments_scanned, payments.bytes_cut) == (1, 0), "the first segment lies below the recovery point"
    directory.close(NOW_MS)
    again = LogDirectory(DiskFiles(), str(path), new_id=numbered_ids())
    assert again.load(config_of, NOW_MS).recoveries == {}
    again.abandon()


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_a_folder_marked_for_deletion_is_removed_and_the_others_are_left_alone(name: str, tmp_path: Path) -> None:
    directory, _, path = unpack(name, tmp_path)
    directory.load(config_of, NOW_MS)
    assert len(list(path.glob("gone-0.*-delete"))) == 1
    directory.run_due(NOW_MS)
    folders = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    expected = [f"{file_names.CLUSTER_METADATA_TOPIC}-0", *map(str, directory.logs)]
    assert folders == sorted(expected)
    directory.abandon()


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_topic_ids_and_the_directory_identity_are_read(name: str, tmp_path: Path) -> None:
    directory, _, path = unpack(name, tmp_path)
    directory.load(config_of, NOW_MS)
    orders = [directory.logs[TopicPartition("orders", number)].topic_id for number in (0, 1)]
    assert orders[0] == orders[1] is not None
    assert len({log.topic_id for log in directory.logs.values()}) == len(directory.logs) - 1
    text = (path / file_names.META_PROPERTIES).read_text()
    identity = DirectoryIdentity.read(DiskFiles(), str(path / file_names.META_PROPERTIES))
    assert identity.node_id == 1
    assert f"cluster.id={identity.cluster_id}\n" in text
    assert f"directory.id={identity.directory_id}\n" in text
    directory.abandon()
