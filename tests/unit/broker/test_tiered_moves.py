"""A partition with records in the remote store moves to another log directory, as in Kafka."""

from __future__ import annotations

from tailrace.protocol import messages as m
from tests.support.tiered_node import TOPIC, TieredNode, keys_of

DIRS = {"log.dirs": "/data,/other"}


def move(node: TieredNode, path: str) -> int:
    request = m.AlterReplicaLogDirsRequest()
    topic = request.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    request.dirs = [request.AlterReplicaLogDir(path=path, topics=[topic])]
    return int(node.client.ask(request, 2).results[0].partitions[0].error_code)


def other_directory(node: TieredNode) -> str:
    return "/other" if node.log().directory.startswith("/data/") else "/data"


def until_moved(node: TieredNode, path: str) -> None:
    for _ in range(50):
        if node.log().directory.startswith(f"{path}/"):
            return
        node.tick(1)
    raise AssertionError("the partition was not moved")


def read_all(node: TieredNode) -> list[int]:
    found: list[int] = []
    while len(found) < node.log().high_watermark:
        answer = node.fetch(len(found))
        assert answer.error_code == 0
        found += [key for key in keys_of(answer.records) if key >= len(found)]
    return found


def tiered() -> TieredNode:
    node = TieredNode(static=DIRS)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    assert node.log().local_start_offset > 10
    return node


def test_a_partition_with_remote_records_moves_to_another_directory() -> None:
    node = tiered()
    path = other_directory(node)
    before = node.log()
    bounds = before.log_start_offset, before.local_start_offset, before.highest_remote_offset
    epochs, producers = list(before.epochs.entries), dict(before.producers.producers)
    assert move(node, path) == 0
    until_moved(node, path)
    log = node.log()
    assert (log.log_start_offset, log.local_start_offset, log.highest_remote_offset) == bounds
    assert list(log.epochs.entries) == epochs
    assert log.producers.producers.keys() == producers.keys()
    assert read_all(node) == list(range(20))


def test_after_a_move_copies_continue_and_a_restart_knows_everything() -> None:
    node = tiered()
    path = other_directory(node)
    assert move(node, path) == 0
    until_moved(node, path)
    node.produce(10)
    node.run_tasks()
    assert node.log().highest_remote_offset > 25
    node.broker.close(node.now_ms)
    again = TieredNode(node.files, DIRS, now_ms=node.now_ms + 1_000)
    again.tick(100)
    assert again.log().log_start_offset == 0
    assert read_all(again) == list(range(30))


def test_the_copy_has_the_producers_of_records_that_are_only_in_the_remote_store() -> None:
    node = TieredNode(static=DIRS)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(2)
    node.append_transactional(77)
    node.end_transaction(77, committed=True)
    node.produce(16)
    node.run_tasks()
    assert node.log().local_start_offset > 10
    path = other_directory(node)
    assert move(node, path) == 0
    until_moved(node, path)
    assert list(node.log().producers.producers) == [77]
    node.append_transactional(78)
    node.run_tasks()
    again = TieredNode(node.copy_of_files(), DIRS, now_ms=node.now_ms + 1_000)
    assert sorted(again.log().producers.producers) == [77, 78]


def test_a_move_begins_again_if_local_retention_overtakes_it() -> None:
    node = TieredNode(static=DIRS)
    assert node.create().error_code == 0
    node.produce(20)
    node.tick(30_000)
    path = other_directory(node)
    assert node.alter({"local.retention.bytes": "1"}).error_code == 0
    node.tick(1)
    assert move(node, path) == 0
    (waiting,) = node.broker.services.moves._moves
    waiting.append(node.fetch(0).records, node.now_ms)
    assert 0 < waiting.copy.log_end_offset < 10
    node.log().delete_old_segments(node.now_ms)
    assert node.log().local_start_offset > 10
    until_moved(node, path)
    assert node.log().local_start_offset > 10
    assert read_all(node) == list(range(20))
