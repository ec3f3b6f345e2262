"""L1, L12, L14: the partition logs below one log.dir."""

from __future__ import annotations

import logging
from functools import partial
from itertools import count
from typing import Any

import pytest

from tailrace.log.directories.log_creation import LogCreation
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.log_renames import RENAMED_AT_ONCE
from tailrace.log.directories.new_logs import NewLog
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import NOW_MS, append, replicate

ORDERS = TopicPartition("orders", 0)
USERS = TopicPartition("users", 3)
TOPIC_ID = TopicId.parse("AAAAAAAAQACAAAAAAAAAAQ")
CONFIG = TopicConfig(file_delete_delay_ms=1000)


def config_of(topic: str) -> TopicConfig:
    return CONFIG


def directory_of(files: MemoryFiles) -> LogDirectory:
    return LogDirectory(files, "/data", new_id=lambda: "f" * 32)


def filled(files: MemoryFiles) -> LogDirectory:
    """Return a directory with five records of orders-0, the first two deleted, and three of users-3."""
    directory = directory_of(files)
    directory.load(config_of, NOW_MS)
    orders = directory.create(ORDERS, CONFIG, NOW_MS, TOPIC_ID)
    users = directory.create(USERS, CONFIG, NOW_MS)
    for _ in range(5):
        append(orders, b"a")
    append(users, b"a", b"b", b"c")
    replicate(orders)
    replicate(users, 2)
    orders.delete_records(2, NOW_MS)
    return directory


def text(files: MemoryFiles, name: str) -> str:
    return files.read(f"/data/{name}").decode()


def test_l1_a_partition_has_a_folder_named_after_it() -> None:
    files = MemoryFiles()
    filled(files)
    tree = files.tree("/data")
    assert "orders-0/00000000000000000000.log" in tree
    assert tree["orders-0/partition.metadata"] == f"version: 0\ntopic_id: {TOPIC_ID}".encode()
    assert "users-3/partition.metadata" not in tree


def test_l1_a_clean_stop_leaves_checkpoints_and_last_the_marker() -> None:
    files = MemoryFiles()
    filled(files).close(NOW_MS, broker_epoch=9)
    assert text(files, "recovery-point-offset-checkpoint") == "0\n2\norders 0 5\nusers 3 3\n"
    assert text(files, "log-start-offset-checkpoint") == "0\n1\norders 0 2\n"
    assert text(files, "replication-offset-checkpoint") == "0\n2\norders 0 5\nusers 3 2\n"
    assert text(files, ".kafka_cleanshutdown") == '{"version":0,"brokerEpoch":9}'
    assert files.open_count == 0


def test_l14_after_a_clean_stop_all_logs_are_loaded_without_a_scan() -> None:
    files = MemoryFiles()
    filled(files).close(NOW_MS, broker_epoch=9)
    directory = directory_of(files)
    report = directory.load(config_of, NOW_MS)
    assert (report.was_clean, report.previous_broker_epoch, report.recoveries) == (True, 9, {})
    orders = directory.logs[ORDERS]
    assert (orders.log_start_offset, orders.log_end_offset, orders.recovery_point) == (2, 5, 5)
    assert orders.topic_id == TOPIC_ID
    assert directory.high_watermarks == {ORDERS: 5, USERS: 2}


def test_l14_the_marker_is_removed_first_so_that_a_crash_while_loading_counts_as_unclean() -> None:
    files = MemoryFiles()
    filled(files).close(NOW_MS)
    directory = directory_of(files)
    directory.load(config_of, NOW_MS)
    assert not files.exists("/data/.kafka_cleanshutdown")


def test_l14_after_an_unclean_stop_logs_are_recovered_from_their_recovery_points() -> None:
    files = MemoryFiles()
    directory = filled(files)
    directory.logs[USERS].flush(NOW_MS)
    directory.checkpoint()
    append(directory.logs[USERS], b"d")
    directory.abandon()
    again = directory_of(files)
    report = again.load(config_of, NOW_MS)
    assert (report.was_clean, report.previous_broker_epoch) == (False, -1)
    assert again.logs[USERS].log_end_offset == 4
    assert sorted(map(str, report.recoveries)) == ["orders-0", "users-3"]


def test_a_log_that_cannot_be_opened_is_reported_and_the_others_are_served(caplog: pytest.LogCaptureFixture) -> None:
    files = MemoryFiles()
    filled(files).close(NOW_MS)
    files.write("/data/users-3/leader-epoch-checkpoint", b"9\n", sync=False)
    directory = directory_of(files)
    with caplog.at_level(logging.ERROR):
        report = directory.load(config_of, NOW_MS)
    assert list(directory.logs) == [ORDERS]
    assert "unknown version" in report.failed["users-3"]
    assert "users-3 stays offline" in caplog.text


def test_a_malformed_checkpoint_is_ignored_and_the_logs_are_scanned_from_their_start() -> None:
    files = MemoryFiles()
    filled(files).abandon()
    files.write("/data/recovery-point-offset-checkpoint", b"nonsense", sync=False)
    directory = directory_of(files)
    report = directory.load(config_of, NOW_MS)
    assert report.failed == {}
    assert directory.logs[ORDERS].log_end_offset == 5


def test_only_one_process_may_hold_the_directory() -> None:
    files = MemoryFiles()
    first = directory_of(files)
    with pytest.raises(DirectoryInUse, match="/data is in use by another process"):
        directory_of(files)
    first.abandon()
    directory_of(files).close(NOW_MS)
    directory_of(files).abandon()


def test_l12_a_deleted_topic_is_renamed_at_once_and_removed_later() -> None:
    files = MemoryFiles()
    directory = filled(files)
    directory.delete(ORDERS, NOW_MS)
    folder = f"/data/orders-0.{'f' * 32}-delete"
    assert files.exists(folder)
    assert not files.exists("/data/orders-0")
    assert ORDERS not in directory.logs
    assert "orders" not in text(files, "recovery-point-offset-checkpoint")
    directory.run_due(NOW_MS + 999)
    assert files.exists(folder)
    directory.run_due(NOW_MS + 1000)
    assert not files.exists(folder)


def test_a_topic_may_be_recreated_while_its_old_logs_wait_for_removal() -> None:
    files = MemoryFiles()
    directory = filled(files)
    directory.delete(ORDERS, NOW_MS)
    again = directory.create(ORDERS, CONFIG, NOW_MS)
    assert append(again, b"new").first_offset == 0
    directory.run_due(NOW_MS + 1000)
    assert directory.logs[ORDERS].log_end_offset == 1


def test_a_folder_marked_for_deletion_before_the_stop_is_removed_after_the_start() -> None:
    files = MemoryFiles()
    directory = filled(files)
    directory.delete(ORDERS, NOW_MS)
    directory.close(NOW_MS)
    again = directory_of(files)
    again.load(config_of, NOW_MS)
    assert list(again.logs) == [USERS]
    again.run_due(NOW_MS)
    assert not files.exists(f"/data/orders-0.{'f' * 32}-delete")


def test_a_stray_partition_is_renamed_and_kept() -> None:
    files = MemoryFiles()
    directory = filled(files)
    name = directory.mark_stray(ORDERS)
    assert name == f"/data/orders-0.{'f' * 32}-stray"
    directory.close(NOW_MS)
    again = directory_of(files)
    again.load(config_of, NOW_MS)
    assert list(again.logs) == [USERS]
    again.run_due(NOW_MS + 10**9)
    assert files.exists(f"{name}/00000000000000000000.log")


def test_folders_that_are_not_partitions_are_left_unchanged() -> None:
    files = MemoryFiles()
    for name in ("__cluster_metadata-0", "remote-log-index-cache", "lost+found"):
        files.make_directory(f"/data/{name}")
    directory = directory_of(files)
    report = directory.load(config_of, NOW_MS)
    assert (directory.logs, report.failed) == ({}, {})
    assert files.tree("/data/__cluster_metadata-0") == {}


def test_a_checkpoint_names_every_log_and_only_moved_log_starts() -> None:
    files = MemoryFiles()
    directory = filled(files)
    directory.checkpoint({ORDERS: 4})
    assert text(files, "recovery-point-offset-checkpoint") == "0\n2\norders 0 2\nusers 3 0\n"
    assert text(files, "log-start-offset-checkpoint") == "0\n1\norders 0 2\n"
    assert text(files, "replication-offset-checkpoint") == "0\n1\norders 0 4\n"


def test_loading_reports_its_progress() -> None:
    files = MemoryFiles()
    filled(files).close(NOW_MS)
    seen: list[tuple[int, int, str]] = []
    directory_of(files).load(config_of, NOW_MS, lambda done, of, partition: seen.append((done, of, str(partition))))
    assert seen == [(0, 2, "orders-0"), (1, 2, "users-3")]


def test_l3_each_segment_of_a_topic_with_jitter_gets_its_own_jitter() -> None:
    files = MemoryFiles()
    jitters = iter([7, 11, 13])
    directory = LogDirectory(files, "/data", new_id=str, new_jitter_ms=lambda config: next(jitters))
    plain = directory.create(ORDERS, CONFIG, NOW_MS)
    jittered = directory.create(USERS, TopicConfig(segment_jitter_ms=100), NOW_MS)
    append(jittered, b"a")
    jittered.roll(NOW_MS)
    assert [segment.jitter_ms for segment in plain.segments] == [0]
    assert [segment.jitter_ms for segment in jittered.segments] == [7, 11]


def test_only_logs_with_due_work_are_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    directory = filled(files)
    directory.run_due(NOW_MS + 10_000)
    looked_at: list[TopicPartition] = []
    run_due = PartitionLog.run_due

    def noting(log: PartitionLog, now_ms: int, at_most: int) -> int:
        looked_at.append(log.partition)
        return run_due(log, now_ms, at_most)

    monkeypatch.setattr(PartitionLog, "run_due", noting)
    assert directory.run_due(NOW_MS + 20_000) == 0
    assert looked_at == []
    done: list[str] = []
    directory.logs[USERS].deferred.add(NOW_MS + 30_000, lambda: done.append("removed"))
    directory.run_due(NOW_MS + 29_999)
    assert (looked_at, done) == ([], [])
    assert directory.run_due(NOW_MS + 30_000) == 1
    directory.run_due(NOW_MS + 40_000)
    assert (looked_at, done) == ([USERS], ["removed"])


def test_a_deleted_log_does_not_keep_its_files_open() -> None:
    files = MemoryFiles()
    directory = filled(files)
    log = directory.logs[ORDERS]
    released: list[int] = []
    log.abandon = lambda: released.append(len(log.segments))  # type: ignore[method-assign]
    directory.delete(ORDERS, NOW_MS)
    directory.run_due(NOW_MS + 999)
    assert (released, files.exists(log.directory)) == ([], True)
    directory.run_due(NOW_MS + 1_000)
    assert (released, files.exists(log.directory)) == ([1], False)


def test_a_tick_does_a_bounded_number_of_deferred_actions() -> None:
    directory = filled(MemoryFiles())
    directory.run_due(NOW_MS)
    done: list[int] = []
    for number in range(10):
        directory.logs[ORDERS if number % 2 else USERS].deferred.add(NOW_MS + 5, partial(done.append, number))
    assert [directory.run_due(NOW_MS + 5, 4) for _ in range(4)] == [4, 4, 2, 0]
    assert sorted(done) == list(range(10))


def test_many_deleted_folders_are_renamed_before_logs_of_the_same_names_are_created() -> None:
    files, waiting = MemoryFiles(), list[Any]()
    ids = (f"{number:032x}" for number in count())
    directory = LogDirectory(files, "/data", new_id=lambda: next(ids))
    directory.load(config_of, NOW_MS)
    keys = [TopicPartition("topic", number) for number in range(RENAMED_AT_ONCE + 50)]
    for key in keys:
        directory.create(key, TopicConfig(), NOW_MS)
    directory.run_work_with(waiting.append, lambda error: None)
    directory.delete_all(keys, NOW_MS)
    assert not directory.logs
    assert files.exists("/data/topic-0"), "another thread renames it"
    created = list[NewLog]()
    creation = LogCreation(
        directory, [NewLog(keys[0], TopicConfig())], NOW_MS, lambda news, now_ms: created.extend(news), lambda *_: None
    )
    directory.run_on_worker(creation, NOW_MS)
    while waiting:
        work = waiting.pop(0)
        work.apply(work.run(), NOW_MS)
    assert created
    assert directory.logs[keys[0]].log_end_offset == 0
    folders = [entry.name for entry in files.entries("/data") if entry.is_directory]
    assert sum(name.endswith("-delete") for name in folders) == len(keys)
    assert "topic-1" not in folders
