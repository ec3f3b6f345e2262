"""A broker that is short of descriptors or memory: operations fail and are retried, no directory goes offline."""

from __future__ import annotations

import errno
import logging
from dataclasses import replace

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.protocol import messages as m
from tailrace.records.batch import split_batches
from tailrace.waiting.chore import Chore, run_now
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client
from tests.unit.broker.test_disk_failures import FIRST, SECOND, STORAGE, create, fetch, produce, start

CODES = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS]


def log_of(client: Client, name: str) -> tuple[LogDirectory, PartitionLog]:
    for directory in client.broker.services.logs.directories:
        for key, log in directory.logs.items():
            if key.topic == name:
                return directory, log
    raise AssertionError(f"there is no log of {name}")


def small_segments(log: PartitionLog) -> None:
    log.update_config(replace(log.config, internal_segment_bytes=200))


@pytest.mark.parametrize("code", CODES)
def test_a_produce_without_a_free_descriptor_fails_and_the_directory_stays_online(code: int) -> None:
    files = FaultyFiles(MemoryFiles())
    client = start(files, FIRST)
    create(client, "topic", 1)
    small_segments(log_of(client, "topic")[1])
    assert [produce(client, "topic", 0) for _ in range(2)] == [0, 0]
    files.fail("open", code)
    assert STORAGE in [produce(client, "topic", 0) for _ in range(4)]
    assert log_of(client, "topic")[0].failure is None
    client.broker.tick(NOW_MS)
    files.heal()
    assert produce(client, "topic", 0) == 0


@pytest.mark.long
@pytest.mark.parametrize("operation", ["open", "sync_directory", "entries"])
def test_a_produce_that_failed_for_lack_of_descriptors_succeeds_when_retried(operation: str) -> None:
    failures = 0
    for skip in range(24):
        files = FaultyFiles(MemoryFiles())
        client = start(files, FIRST)
        create(client, "topic", 1)
        directory, log = log_of(client, "topic")
        small_segments(log)
        acknowledged = produce(client, "topic", 0, b"first") == 0
        files.fail(operation, errno.EMFILE, path="topic-0", skip=skip, times=1)
        for number in range(12):
            value = b"%d" % number
            if produce(client, "topic", 0, value) != 0:
                failures += 1
                assert produce(client, "topic", 0, value) == 0
            client.broker.tick(NOW_MS)
        files.heal()
        assert acknowledged
        assert directory.failure is None
        assert log.log_end_offset == 13
        assert len(log.segments) > 3
        client.broker.close(NOW_MS)
        reopened = start(files, FIRST)
        code, records = fetch(reopened, "topic", 0)
        assert code == 0
        assert [one.base_offset for one in split_batches(records)] == list(range(len(list(split_batches(records)))))
        assert log_of(reopened, "topic")[1].log_end_offset == 13
    assert failures or operation != "open"  # the others happen after the response


def test_a_metadata_change_without_a_free_descriptor_fails_and_the_broker_continues() -> None:
    failures = 0
    for skip in range(8):
        files = FaultyFiles(MemoryFiles())
        client = start(files, FIRST)
        for operation in ("open", "sync_directory"):
            files.fail(operation, errno.EMFILE, path="__cluster_metadata-0", skip=skip, times=1)
            log = client.broker.services.controller.log.log
            log.update_config(replace(log.config, internal_segment_bytes=200))
            replies = client.send(topic_request(f"{operation}-{skip}"), 5)
            failures += replies[0].close
            assert client.broker.services.controller.log.failure is None
            files.heal()
            client.broker.tick(NOW_MS)
            assert create(client, f"next-{operation}", 1) == 0
    assert failures


def topic_request(name: str) -> object:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return m.CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def test_upkeep_without_descriptors_leaves_directories_online_and_logs_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = FaultyFiles(MemoryFiles())
    client = start(files, FIRST, SECOND)
    create(client, "topic")
    _, log = log_of(client, "topic")
    small_segments(log)
    files.fail("open", errno.EMFILE)
    with caplog.at_level(logging.ERROR):
        for second in range(0, 200, 2):
            client.broker.tick(NOW_MS + second * 1_000)
            produce(client, "topic", log.partition.partition)
    assert not [one for one in client.broker.services.logs.directories if one.failure]
    lines = [record.getMessage() for record in caplog.records if "lack of descriptors" in record.getMessage()]
    assert 1 <= len(lines) <= 21
    files.heal()
    assert produce(client, "topic", 0) == 0


def test_a_chore_that_failed_for_lack_of_descriptors_is_submitted_again_after_a_second() -> None:
    files = FaultyFiles(MemoryFiles())
    client = start(files, FIRST)
    create(client, "topic", 1)
    directory, log = log_of(client, "topic")
    submitted: list[Chore] = []
    errors: list[OSError] = []
    directory.run_work_with(submitted.append, errors.append)
    produce(client, "topic", 0)
    log.roll(NOW_MS)
    directory.run_due(NOW_MS)
    files.fail("open", errno.EMFILE)
    for work in submitted[:]:
        run_now(work, NOW_MS)
    assert [error.errno for error in errors] == [errno.EMFILE] * len(submitted)
    assert directory.failure is None
    files.heal()
    again = len(submitted)
    directory.run_due(NOW_MS + 999)
    assert len(submitted) == again
    directory.run_due(NOW_MS + 1_000)
    assert len(submitted) == 2 * again
    for work in submitted[again:]:
        run_now(work, NOW_MS + 1_000)
    assert log.recovery_point == log.log_end_offset == 1


def test_a_start_without_enough_descriptors_is_refused_and_takes_no_partition_offline() -> None:
    files = FaultyFiles(MemoryFiles())
    client = start(files, FIRST)
    create(client, "topic", 1)
    produce(client, "topic", 0)
    client.broker.close(NOW_MS)
    files.fail("open", errno.EMFILE, path="topic-0")
    with pytest.raises(OSError, match="Too many open files"):
        start(files, FIRST)
