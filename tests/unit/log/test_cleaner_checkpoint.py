"""L13: how far each log of a directory is clean."""

from __future__ import annotations

import logging

import pytest

from tailrace.log.compaction.cleaner_checkpoint import CleanerCheckpoint
from tailrace.log.disk.files import DiskFiles
from tailrace.model.ids import TopicPartition
from tests.support.memory_files import memory_files

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
PATH = "/data/cleaner-offset-checkpoint"


def test_the_cleaner_checkpoint_has_kafkas_format(tmp_path) -> None:
    checkpoint = CleanerCheckpoint(DiskFiles(), str(tmp_path))
    assert checkpoint.read() == {}
    checkpoint.update(A, 17, {A})
    checkpoint.update(B, 4, {A, B})
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n2\na 0 17\nb 1 4\n"
    assert checkpoint.read() == {A: 17, B: 4}


def test_an_update_drops_partitions_that_no_longer_exist() -> None:
    checkpoint = CleanerCheckpoint(memory_files({PATH: b"0\n2\na 0 17\nb 1 4\n"}), "/data")
    checkpoint.update(A, 20, {A})
    assert checkpoint.read() == {A: 20}


def test_a_truncated_log_is_dirty_again_from_the_truncation_offset() -> None:
    checkpoint = CleanerCheckpoint(memory_files({PATH: b"0\n2\na 0 17\nb 1 4\n"}), "/data")
    checkpoint.truncate(A, 18)
    checkpoint.truncate(B, 2)
    assert checkpoint.read() == {A: 17, B: 2}
    checkpoint.remove(A)
    assert checkpoint.read() == {B: 2}


def test_with_a_corrupt_cleaner_checkpoint_all_logs_are_dirty(caplog: pytest.LogCaptureFixture) -> None:
    checkpoint = CleanerCheckpoint(memory_files({PATH: b"0\n7\na 0 17\n"}), "/data")
    with caplog.at_level(logging.WARNING):
        assert checkpoint.read() == {}
    assert "the count is 7, but there are 1 entries" in caplog.text
