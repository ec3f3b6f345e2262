"""Topics that are deleted or no longer tiered while their segments are copied, and stops in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tailrace.tiers.steps import Work
from tests.support.tiered_node import KEY, TieredNode, keys_of


class HeldCopies:
    """Copies that wait until the test runs them. All other work runs at once."""

    def __init__(self) -> None:
        self.node: TieredNode | None = None
        self.waiting: list[Work] = []

    def submit(self, lane: str, work: Work, threads_max: int) -> None:
        if lane == "copy":
            self.waiting.append(work)
        else:
            self.run(work)

    def run(self, work: Work) -> None:
        assert self.node is not None
        try:
            result = work.run()
        except Exception as error:
            work.failed(error, self.node.now_ms)
        else:
            work.apply(result, self.node.now_ms)

    def run_all(self) -> None:
        while self.waiting:
            self.run(self.waiting.pop(0))


def during_a_copy() -> tuple[TieredNode, HeldCopies]:
    """Return a node with one copied segment and a copy in progress."""
    work = HeldCopies()
    node = work.node = TieredNode(submit=work.submit)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.tick(30_000)
    work.run(work.waiting.pop(0))
    assert node.remote_files()
    assert len(work.waiting) == 1
    return node, work


def delete(node: TieredNode) -> None:
    assert node.delete() == 0


def disable(node: TieredNode) -> None:
    done = node.alter({"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"})
    assert done.error_code == 0


@pytest.mark.parametrize("act", [delete, disable])
def test_a_copy_that_ends_after_its_topic_leaves_no_files(act: Callable[[TieredNode], None]) -> None:
    node, work = during_a_copy()
    act(node)
    node.run_tasks()
    work.run_all()
    node.run_tasks()
    assert node.remote_files() == []
    assert work.waiting == [], "nothing more is copied"


def test_a_topic_that_is_tiered_again_is_copied_after_its_old_segments_are_deleted() -> None:
    node, work = during_a_copy()
    disable(node)
    node.tick(1_000)
    start = node.log().log_start_offset
    assert node.alter({"remote.storage.enable": "true", "remote.log.delete.on.disable": "false"}).error_code == 0
    node.tick(1_000)
    work.run_all()
    for _ in range(3):
        node.run_tasks()
        work.run_all()
    assert node.log().log_start_offset == start
    found = [key for offset in range(start, 20) for key in keys_of(node.fetch(offset).records)[:1]]
    assert found == list(range(start, 20))


def test_after_a_stop_while_a_topic_is_disabled_the_remote_log_is_deleted() -> None:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    assert node.remote_files()
    disable(node)  # the metadata has it, and no task has run
    again = TieredNode(node.copy_of_files(), now_ms=node.now_ms + 1_000)
    again.run_tasks()
    assert again.remote_files() == []
    log = again.log()
    assert log.log_start_offset == log.local_start_offset > 0
    assert keys_of(again.fetch(log.log_start_offset).records)[0] == log.log_start_offset
    assert again.broker.services.remote_logs is not None
    assert again.broker.services.remote_logs.get(KEY) is None
