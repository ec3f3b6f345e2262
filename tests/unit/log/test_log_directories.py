"""Several log.dirs as one."""

from __future__ import annotations

import pytest

from tailrace.log.directories.log_directories import DuplicateLog, LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import NOW_MS


def directories_of(files: MemoryFiles, *paths: str) -> LogDirectories:
    return LogDirectories([LogDirectory(files, path, new_id=str) for path in paths])


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def test_a_new_partition_is_created_in_the_directory_with_the_fewest_partitions() -> None:
    directories = directories_of(MemoryFiles(), "/a", "/b", "/c")
    made = [directories.create(partition(n), TopicConfig(), NOW_MS).directory for n in range(5)]
    assert made == ["/a/orders-0", "/b/orders-1", "/c/orders-2", "/a/orders-3", "/b/orders-4"]


def test_a_partition_is_found_in_any_directory() -> None:
    directories = directories_of(MemoryFiles(), "/a", "/b")
    logs = [directories.create(partition(n), TopicConfig(), NOW_MS) for n in range(2)]
    assert [directories.get(partition(n)) for n in range(3)] == [*logs, None]


def test_the_same_partition_in_two_directories_is_an_error_that_names_both() -> None:
    directories = directories_of(MemoryFiles(), "/a", "/b")
    for directory in directories.directories:
        directory.create(partition(0), TopicConfig(), NOW_MS)
    with pytest.raises(DuplicateLog, match=r"orders-0 is in /a/orders-0 and in /b/orders-0"):
        directories.check_unique()


def test_different_partitions_are_not_duplicates() -> None:
    directories = directories_of(MemoryFiles(), "/a", "/b")
    directories.create(partition(0), TopicConfig(), NOW_MS)
    directories.create(partition(1), TopicConfig(), NOW_MS)
    directories.check_unique()


def test_a_partition_cannot_be_created_twice() -> None:
    directories = directories_of(MemoryFiles(), "/a", "/b")
    directories.create(partition(0), TopicConfig(), NOW_MS)
    with pytest.raises(AssertionError, match="orders-0 exists already"):
        directories.create(partition(0), TopicConfig(), NOW_MS)


def test_at_least_one_log_directory_is_required() -> None:
    with pytest.raises(AssertionError, match="at least one log directory"):
        LogDirectories([])
