"""Tiered storage on a node in memory: copy, read, expire, delete."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig
from tests.support.tiered_node import KEY, SETTINGS, TieredNode, keys_of


def read_all(node: TieredNode, start: int = 0, **options: Any) -> list[int]:
    """Consume to the end, as a client would."""
    found: list[int] = []
    end = node.log().high_watermark
    while start < end:
        answer = node.fetch(start, **options)
        assert answer.error_code == 0
        keys = [key for key in keys_of(answer.records) if key >= start]
        assert keys, start
        found += keys
        start = keys[-1] + 1
    return found


def tiered(**settings: str) -> TieredNode:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1", **settings}).error_code == 0
    node.produce(20)
    return node


def test_sealed_segments_are_copied_and_then_deleted_locally() -> None:
    node = tiered()
    assert node.log().local_start_offset == 0
    node.run_tasks()
    log = node.log()
    assert log.highest_remote_offset >= 17
    assert log.log_start_offset == 0
    assert log.local_start_offset == log.highest_remote_offset + 1
    assert [name.rpartition(".")[2] for name in node.remote_files()[:5]] == [
        "index",
        "leader_epoch_checkpoint",
        "log",
        "snapshot",
        "timeindex",
    ]


def test_a_consumer_reads_every_record_once_over_both_tiers() -> None:
    node = tiered()
    node.run_tasks()
    node.produce(3)
    assert read_all(node) == list(range(23))
    assert read_all(node, partition_max_bytes=200) == list(range(23))


def test_a_restart_knows_the_remote_segments_and_the_log_start() -> None:
    node = tiered()
    node.run_tasks()
    node.broker.close(node.now_ms)
    again = TieredNode(node.files, now_ms=node.now_ms + 1_000)
    again.tick(100)
    assert again.log().log_start_offset == 0
    assert read_all(again) == list(range(20))
    before = again.remote_files()
    again.run_tasks()
    assert again.remote_files() == before, "nothing is copied twice"


def test_remote_retention_by_size_deletes_the_oldest_segments() -> None:
    node = tiered()
    node.run_tasks()
    everything = len(node.remote_files())
    node.alter({"retention.bytes": "1000"})
    node.run_tasks()
    log = node.log()
    assert 0 < log.log_start_offset <= log.local_start_offset
    assert len(node.remote_files()) < everything
    assert node.fetch(0).error_code == 1
    assert read_all(node, log.log_start_offset) == list(range(log.log_start_offset, 20))


def test_remote_retention_by_time_deletes_segments() -> None:
    node = tiered(**{"retention.ms": "3600000"})
    node.run_tasks()
    assert node.remote_files()
    node.tick(3_700_000)
    node.run_tasks()
    assert node.remote_files() == []
    assert node.log().log_start_offset > 0


def test_the_remote_log_of_a_deleted_topic_is_deleted() -> None:
    node = tiered()
    node.run_tasks()
    assert node.remote_files()
    assert node.delete() == 0
    node.run_tasks()
    assert node.remote_files() == []


def test_disabling_needs_the_deletion_of_the_remote_data() -> None:
    node = tiered()
    node.run_tasks()
    refused = node.alter({"remote.storage.enable": "false"})
    assert refused.error_code == 40
    assert refused.error_message.startswith("It is invalid to disable remote storage without deleting remote data")
    done = node.alter({"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"})
    assert done.error_code == 0
    node.run_tasks()
    assert node.remote_files() == []
    log = node.log()
    assert log.log_start_offset == log.local_start_offset > 0


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"cleanup.policy": "compact"}, "Remote log storage only supports topics with cleanup.policy=delete"),
        ({"retention.ms": "10", "local.retention.ms": "11"}, "Value must not be more than retention.ms property"),
        ({"retention.bytes": "10", "local.retention.bytes": "-1"}, "Value must not be -1 as retention.bytes value"),
        (
            {"remote.log.copy.disable": "true", "retention.ms": "10", "local.retention.ms": "9"},
            "must be set to the identical value",
        ),
    ],
)
def test_contradicting_topic_settings_are_refused(settings: dict[str, str], problem: str) -> None:
    refused = TieredNode().create({"local.retention.bytes": "-2", **settings})
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert problem in refused.error_message


def test_without_tiered_storage_a_topic_cannot_have_it() -> None:
    refused = TieredNode(static={"remote.log.storage.system.enable": "false"}).create()
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message.startswith("Tiered Storage functionality is disabled in the broker")


def test_tiered_storage_cannot_be_disabled_while_a_topic_has_it() -> None:
    node = tiered()
    node.broker.close(node.now_ms)
    with pytest.raises(InvalidConfig, match="You have to delete all topics"):
        TieredNode(node.files, static={"remote.log.storage.system.enable": "false"})


def test_a_broker_with_separate_controllers_refuses_tiered_storage() -> None:
    with pytest.raises(InvalidConfig, match="separate controllers"):
        BrokerConfig(
            {
                **SETTINGS,
                "process.roles": "broker",
                "log.dirs": "/data",
                "listeners": "PLAINTEXT://:9092",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "localhost:9093",
            }
        )


def test_read_only_topics_copy_nothing_more_but_stay_readable() -> None:
    node = tiered()
    node.run_tasks()
    before = node.remote_files()
    changed = {"remote.log.copy.disable": "true", "local.retention.bytes": "-2"}
    assert node.alter(changed).error_code == 0
    node.produce(10)
    node.run_tasks()
    assert node.remote_files() == before
    assert read_all(node) == list(range(30))


def test_delete_records_deletes_remote_segments_below_the_new_start() -> None:
    node = tiered()
    node.run_tasks()
    before = len(node.remote_files())
    node.broker.services.partitions.find(KEY).delete_records(9, node.now_ms)
    node.run_tasks()
    assert node.log().log_start_offset == 9
    assert 0 < len(node.remote_files()) < before
    assert read_all(node, 9) == list(range(9, 20))


def test_lookups_by_time_begin_in_the_remote_store() -> None:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    times = []
    for _ in range(20):
        node.tick(1_000)
        times.append(node.now_ms)
        node.produce(1)
    node.run_tasks()
    assert node.log().local_start_offset > 10
    for offset in (0, 3, 11, node.log().local_start_offset, 19):
        assert node.offset_of(times[offset]) == (0, offset)
        assert node.offset_of(times[offset] - 500) == (0, offset)
    assert node.offset_of(times[-1] + 1) == (0, -1)
    highest = node.log().highest_remote_offset
    bounds = {-2: 0, -4: highest + 1, -5: highest, -6: highest + 1, -1: 20}
    assert {target: node.offset_of(target) for target in bounds} == {one: (0, offset) for one, offset in bounds.items()}


def test_aborted_transactions_are_listed_over_both_tiers() -> None:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(2)
    node.append_transactional(77)
    node.produce(6)
    node.end_transaction(77, committed=False)
    node.produce(8)
    node.run_tasks()
    assert node.log().local_start_offset > 9
    for offset in (2, 4):  # the marker is in a later segment
        answer = node.fetch(offset, isolation_level=1)
        assert answer.error_code == 0
        assert [(one.producer_id, one.first_offset) for one in answer.aborted_transactions] == [(77, 2)]
    assert node.fetch(0, isolation_level=1).aborted_transactions == []
    assert not node.fetch(2).aborted_transactions
