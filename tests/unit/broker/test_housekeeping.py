"""Periodic checkpoints of high watermarks."""

from __future__ import annotations

from itertools import pairwise

from tailrace.model.ids import TopicPartition
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start
from tests.unit.broker.test_directory_moves import create, produce

PATH = "/data/replication-offset-checkpoint"


def test_high_watermarks_are_checkpointed_at_their_interval_if_they_have_moved() -> None:
    files = MemoryFiles()
    client = Client(start(files, {"replica.high.watermark.checkpoint.interval.ms": "5000"}))
    create(client)
    produce(client, b"a", b"b")
    client.broker.tick(NOW_MS + 4_999)
    assert not files.exists(PATH)
    client.broker.tick(NOW_MS + 5_000)
    assert files.read(PATH) == b"0\n1\norders 0 2\n"
    files.remove(PATH)
    client.broker.tick(NOW_MS + 10_000)
    assert not files.exists(PATH)
    produce(client, b"c")
    client.broker.tick(NOW_MS + 15_000)
    assert files.read(PATH) == b"0\n1\norders 0 3\n"


class Switch:
    """A turn that is over or not."""

    is_on = False

    def __call__(self) -> bool:
        return self.is_on


def test_retention_deletes_one_segment_in_each_turn() -> None:
    files = MemoryFiles()
    settings = {"log.retention.ms": "1000", "log.retention.check.interval.ms": "5000"}
    turn = Switch()
    broker = start(files, settings, is_turn_over=turn)
    client = Client(broker)
    create(client)
    turn.is_on = True
    (log,) = (one for one in broker.services.logs.directories[0].logs.values() if one.partition.topic == "orders")
    for _ in range(10):
        produce(client, b"value")
        log.roll(NOW_MS)
    counts = [len(log.segments)]
    now_ms = NOW_MS + 5_000
    for _ in range(100):
        broker.tick(now_ms)
        counts.append(len(log.segments))
    assert counts[-1] == 1
    assert max(before - after for before, after in pairwise(counts)) == 1
    assert broker.services.housekeeping.next_deadline_ms() > now_ms, "nothing is left to do"


def test_a_topic_that_is_deleted_between_two_turns_does_not_disturb_retention() -> None:
    turn = Switch()
    broker = start(MemoryFiles(), {"log.retention.check.interval.ms": "5000"}, is_turn_over=turn)
    create(Client(broker))
    turn.is_on = True
    broker.tick(NOW_MS + 5_000)
    broker.services.logs.directories[0].delete(TopicPartition("orders", 0), NOW_MS)
    for _ in range(20):
        broker.tick(NOW_MS + 5_000)
    assert not broker.internal_errors.counts
