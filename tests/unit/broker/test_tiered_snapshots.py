"""The snapshot of the remote metadata: a restart continues where it ends, and the topic stays the truth."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.storage.remote import metadata_topic
from tailrace.broker.storage.remote.metadata_snapshot import NAME
from tests.support.memory_files import MemoryFiles
from tests.support.tiered_node import KEY, TieredNode, keys_of

PATH = f"/data/{NAME}"


def tiered() -> TieredNode:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    return node


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the records of the topic that were read."""
    found: list[Any] = []
    decode = metadata_topic.decode_record

    def note(value: Any) -> Any:
        found.append(decode(value))
        return found[-1]

    monkeypatch.setattr(metadata_topic, "decode_record", note)
    return found


def state(node: TieredNode) -> Any:
    logs = node.broker.services.remote_logs
    assert logs is not None
    partition = logs.get(KEY)
    assert partition is not None
    segments, epochs = partition.cache.state()
    return set(segments), set(epochs)


def restarted(files: MemoryFiles, now_ms: int) -> TieredNode:
    node = TieredNode(files, now_ms=now_ms + 1_000)
    node.tick(100)
    return node


def test_a_restart_reads_no_record_that_the_snapshot_has(decoded: list[Any]) -> None:
    node = tiered()
    node.alter({"retention.bytes": "1000"})
    node.run_tasks()
    before, start = state(node), node.log().log_start_offset
    node.broker.close(node.now_ms)
    decoded.clear()
    again = restarted(node.copy_of_files(), node.now_ms)
    assert decoded == []
    assert state(again) == before
    assert keys_of(again.fetch(start).records)[0] == start
    again.produce(10)
    again.run_tasks()
    assert decoded, "new records are read"
    after = state(again)
    again.broker.close(again.now_ms)
    assert state(restarted(again.copy_of_files(), again.now_ms)) == after


def test_after_a_crash_the_records_after_the_snapshot_are_read(decoded: list[Any]) -> None:
    node = tiered()
    node.broker.close(node.now_ms)
    second = restarted(node.copy_of_files(), node.now_ms)
    second.produce(10)
    decoded.clear()
    second.run_tasks()
    new = len(decoded)
    decoded.clear()
    third = restarted(second.copy_of_files(), second.now_ms)
    assert len(decoded) == new > 0
    assert state(third) == state(second)


@pytest.mark.parametrize("damage", [b"", b"x", b"tailrace-remote-metadata 1 00000000\n{}"])
def test_a_damaged_snapshot_is_ignored(decoded: list[Any], damage: bytes) -> None:
    node = tiered()
    before = state(node)
    node.broker.close(node.now_ms)
    files = node.copy_of_files()
    assert files.exists(PATH)
    files.write(PATH, damage, sync=True)
    decoded.clear()
    assert state(restarted(files, node.now_ms)) == before
    assert decoded


def test_a_snapshot_of_another_history_is_ignored(decoded: list[Any]) -> None:
    node = tiered()
    earlier = node.copy_of_files()
    before = state(node)
    node.produce(10)
    node.run_tasks()
    node.broker.close(node.now_ms)
    earlier.write(PATH, node.files.read(PATH), sync=True)  # as if the topic had lost its last records
    decoded.clear()
    again = restarted(earlier, node.now_ms)
    assert decoded
    assert state(again) == before
    assert keys_of(again.fetch(0).records)[0] == 0


def test_a_snapshot_is_written_by_a_chore_after_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_topic, "_RECORDS_A_SNAPSHOT", 5)
    node = tiered()
    assert node.files.exists(PATH)


def test_the_remote_log_of_a_topic_that_was_deleted_before_a_crash_is_deleted_with_a_snapshot() -> None:
    node = tiered()
    node.broker.close(node.now_ms)
    second = restarted(node.copy_of_files(), node.now_ms)
    assert second.delete() == 0
    third = restarted(second.copy_of_files(), second.now_ms)
    third.run_tasks()
    assert third.remote_files() == []
