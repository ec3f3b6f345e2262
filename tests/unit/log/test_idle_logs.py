"""A start and a clean stop write and sync nothing for logs without new records."""

from __future__ import annotations

from functools import partial

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.waiting.chore import run_now
from tests.support.memory_files import MemoryFiles
from tests.support.recording_files import Operation, RecordingFiles
from tests.support.small_logs import NOW_MS, append

OLD_EPOCH, NEW_EPOCH = 0, 1


def _opened(files: MemoryFiles) -> LogDirectory:
    directory = LogDirectory(files, "/data", new_id=lambda: "f" * 32)
    directory.load(lambda _: TopicConfig(), NOW_MS)
    directory.run_work_with(partial(run_now, now_ms=NOW_MS), lambda error: pytest.fail(str(error)))
    return directory


def _stopped(logs: int) -> RecordingFiles:
    """Return the files of a clean stop with some logs of one record each."""
    files = MemoryFiles()
    directory = _opened(files)
    for number in range(logs):
        append(directory.create(TopicPartition("topic", number), TopicConfig(), NOW_MS), b"a", leader_epoch=OLD_EPOCH)
    directory.run_due(NOW_MS)
    directory.close(NOW_MS)
    return RecordingFiles(files.root)


def _restart(files: RecordingFiles) -> list[Operation]:
    """Start, lead every log in a new epoch, and stop. Return the changes and syncs of files."""
    directory = _opened(files)
    for log in directory.logs.values():
        log.epochs.assign(NEW_EPOCH, log.log_end_offset)
    directory.run_due(NOW_MS)
    directory.close(NOW_MS)
    return files.trace


def test_a_restart_costs_as_many_writes_and_syncs_for_many_idle_logs_as_for_one() -> None:
    assert len(_restart(_stopped(9))) == len(_restart(_stopped(1)))


def test_the_epoch_of_a_record_is_in_the_file_after_a_clean_stop() -> None:
    files = _stopped(1)
    directory = _opened(files)
    (log,) = directory.logs.values()
    log.epochs.assign(NEW_EPOCH, log.log_end_offset)
    append(log, b"b", leader_epoch=NEW_EPOCH)
    directory.close(NOW_MS)
    assert files.read(log.epochs.path) == b"0\n2\n0 0\n1 1\n"


def test_a_truncation_is_synced_by_a_clean_stop() -> None:
    files = _stopped(1)
    directory = _opened(files)
    (log,) = directory.logs.values()
    log.truncate_to(0, NOW_MS)
    before = len(files.trace)
    log.flush(NOW_MS)
    assert [type(one).__name__ for one in files.trace[before:]].count("Sync") >= 1


def test_many_epochs_are_written_in_groups_so_that_other_work_gets_its_turn() -> None:
    directory = _opened(MemoryFiles())
    waiting = []
    for number in range(250):
        append(directory.create(TopicPartition("topic", number), TopicConfig(), NOW_MS), b"a", leader_epoch=OLD_EPOCH)
    directory.run_work_with(waiting.append, lambda error: pytest.fail(str(error)))
    for log in directory.logs.values():
        log.epochs.assign(NEW_EPOCH, log.log_end_offset)
        append(log, b"b", leader_epoch=NEW_EPOCH)
    directory.run_due(NOW_MS)
    runs = 0
    while waiting:
        work = waiting.pop(0)
        work.apply(work.run(), NOW_MS)
        runs += 1
    assert runs == 3
    assert not any(log.epochs.is_behind(log.log_end_offset) for log in directory.logs.values())
