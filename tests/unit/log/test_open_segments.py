"""OpenSegments: neither partitions nor segments use up the descriptors of the process."""

from __future__ import annotations

import os
from pathlib import Path

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.new_logs import NewLog
from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.open_segments import OpenSegments, reopened
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.batches import batch

NOW_MS = 1_000_000
SEGMENTS_MAX = 4


def open_files(path: Path) -> int:
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith(f"{path}/topic-") for link in links if os.path.islink(link))


def directory_in(path: Path) -> LogDirectory:
    directory = LogDirectory(DiskFiles(), str(path), new_id=lambda: "0" * 32, open_segments=OpenSegments(SEGMENTS_MAX))
    directory.load(lambda topic: TopicConfig(), NOW_MS)
    return directory


def append(log: PartitionLog) -> None:
    log.append_as_leader(batch(b"value"), leader_epoch=0, now_ms=NOW_MS)


def test_new_logs_have_no_open_files(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    keys = [TopicPartition("topic", number) for number in range(20)]
    for log in directory.create_unregistered([NewLog(key, TopicConfig()) for key in keys], NOW_MS):
        directory.add(log)
    assert open_files(tmp_path) == 0


def test_appends_to_many_logs_keep_a_limited_number_of_files_open(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    logs = [directory.create(TopicPartition("topic", number), TopicConfig(), NOW_MS) for number in range(20)]
    for _ in range(3):
        for log in logs:
            append(log)
    assert open_files(tmp_path) == SEGMENTS_MAX
    assert {log.log_end_offset for log in logs} == {3}
    assert {log.read(2, 1_000).slice is not None for log in logs} == {True}


def test_reads_of_many_segments_keep_a_limited_number_of_files_open(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    log = directory.create(TopicPartition("topic", 0), TopicConfig(index_interval_bytes=0), NOW_MS)
    for _ in range(20):
        append(log)
        append(log)
        log.roll(NOW_MS)
    for _ in range(2):
        for offset in range(40):
            assert log.read(offset, 1_000).slice is not None
    assert 0 < open_files(tmp_path) <= 3 * SEGMENTS_MAX


def test_a_log_that_was_opened_again_keeps_a_limited_number_of_files_open(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    for number in range(20):
        append(directory.create(TopicPartition("topic", number), TopicConfig(), NOW_MS))
    directory.close(NOW_MS)
    again = directory_in(tmp_path)
    for log in again.logs.values():
        append(log)
    assert 0 < open_files(tmp_path) <= 3 * SEGMENTS_MAX
    again.abandon()


def test_a_reopened_segment_has_files_of_its_own(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    log = directory.create(TopicPartition("topic", 0), TopicConfig(), NOW_MS)
    append(log)
    log.roll(NOW_MS)
    copy = reopened(DiskFiles(), log.segments.first)
    assert [header.base_offset for header in copy.headers()] == [0]
    assert copy.log is not log.segments.first.log
    copy.release()
