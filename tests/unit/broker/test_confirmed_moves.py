"""A copy takes its log's place only when the metadata says that the replica is there, as below other controllers."""

from __future__ import annotations

from typing import Any

from tailrace.model.ids import TopicPartition
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client
from tests.unit.broker.test_directory_moves import (
    A,
    B,
    C,
    create,
    log_dirs,
    order,
    other,
    place,
    produce,
    run_pending,
    start,
    values,
)

KEY = TopicPartition("orders", 0)


class SlowController:
    """A controller that assigns directories only when the test calls `carry_out`."""

    def __init__(self, client: Client) -> None:
        controller: Any = client.broker.services.controller
        self.reported: list[tuple[bytes, bytes, int]] = []
        self._assign = controller.assign_directories
        controller.assign_directories = lambda places, now_ms: self.reported.extend(places)

    def carry_out(self) -> None:
        places, self.reported = self.reported, []
        self._assign(places, NOW_MS)


def run(client: Client, ms: int = 1_000) -> None:
    for now_ms in range(client.now_ms, client.now_ms + ms, 10):
        client.broker.tick(now_ms)
    client.now_ms += ms


def directory(client: Client, path: str) -> bytes:
    return next(one.id for one in client.broker.services.logs.directories if one.path == path)


def assigned(client: Client) -> bytes:
    state = client.broker.services.controller.image.partition(KEY)
    assert state is not None
    return state.directory_of(1)


def ordered(files: MemoryFiles, *paths: str) -> tuple[Client, SlowController, str, str]:
    client = start(files, *paths)
    create(client)
    produce(client, b"a", b"b")
    controller = SlowController(client)
    (source,) = place(client.broker)
    target = other(source)
    assert order(client, target) == 0
    run(client)
    return client, controller, source, target


def test_the_old_log_is_kept_until_the_metadata_has_the_new_directory() -> None:
    client, controller, source, target = ordered(MemoryFiles())
    assert controller.reported == [(directory(client, target), client.broker.services.partitions.find(KEY).topic_id, 0)]
    assert place(client.broker) == [source]
    produce(client, b"c")
    run(client)
    assert log_dirs(client)[target, True][1] == 0  # the copy follows the log meanwhile
    assert len(controller.reported) == 1
    controller.carry_out()
    run(client)
    assert place(client.broker) == [target]
    assert values(client.broker) == [b"a", b"b", b"c"]
    assert not client.broker.services.moves


def test_an_unconfirmed_directory_assignment_is_sent_again_after_30_seconds() -> None:
    client, controller, _, _ = ordered(MemoryFiles())
    run(client, 30_000)
    assert len(controller.reported) == 2


def test_a_cancelled_move_assigns_the_source_directory_again() -> None:
    client, controller, source, _ = ordered(MemoryFiles(), A, B, C)
    controller.carry_out()
    assert assigned(client) != directory(client, source)
    order(client, source)  # before the copy has taken its place
    controller.carry_out()
    assert assigned(client) == directory(client, source)
    run(client)
    assert place(client.broker) == [source]


def test_after_a_crash_between_assignment_and_swap_the_move_is_finished() -> None:
    files = MemoryFiles()
    client, controller, _, target = ordered(files)
    controller.carry_out()
    client.broker.abandon()
    client = start(files)
    assert assigned(client) == directory(client, target)
    run_pending(client.broker)
    assert place(client.broker) == [target]
    assert values(client.broker) == [b"a", b"b"]


def test_after_a_crash_before_the_assignment_the_move_is_resumed() -> None:
    files = MemoryFiles()
    client, _, _, target = ordered(files)
    client.broker.abandon()
    client = start(files)
    assert assigned(client) != directory(client, target)
    run_pending(client.broker)
    assert place(client.broker) == [target]
    assert values(client.broker) == [b"a", b"b"]
