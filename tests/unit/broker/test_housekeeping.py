"""What the broker notes now and then, whether or not a client asks."""

from __future__ import annotations

from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start
from tests.unit.broker.test_directory_moves import create, produce

PATH = "/data/replication-offset-checkpoint"


def test_high_watermarks_are_noted_at_their_interval_and_only_if_they_have_moved() -> None:
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
