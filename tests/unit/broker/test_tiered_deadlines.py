"""A remote store that blocks: its calls are ended from the loop, tried again, and undone if they end later."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.startup.remote_building import COPY_TIMEOUT_MS
from tailrace.model.errors import ErrorCode
from tailrace.tiers.copying import GRACE_MS
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tailrace.tiers.steps import CALL_MS, Work
from tailrace.tiers.stores.remote_store import RemoteStorageError
from tests.support.tiered_node import KEY, TieredNode, keys_of

COPY_END_MS = COPY_TIMEOUT_MS + GRACE_MS


class Hanging:
    """Threads on which calls of one lane hang after they have done their work, until the test lets them return."""

    def __init__(self) -> None:
        self.node: TieredNode | None = None
        self.lane = ""
        self.hung: list[tuple[Work, object]] = []
        self.abandoned: list[Work] = []

    def submit(self, lane: str, work: Work, threads_max: int) -> None:
        assert self.node is not None
        try:
            result = work.run()
        except Exception as error:
            work.failed(error, self.node.now_ms)
            return
        if lane == self.lane:
            self.hung.append((work, result))
        else:
            work.apply(result, self.node.now_ms)

    def abandon(self, lane: str, work: Work) -> None:
        self.abandoned.append(work)

    def let_return(self) -> None:
        assert self.node is not None
        self.lane = ""
        while self.hung:
            work, result = self.hung.pop(0)
            work.apply(result, self.node.now_ms)


def hanging(lane: str, act: Callable[[TieredNode], None] = lambda node: None) -> tuple[TieredNode, Hanging]:
    calls = Hanging()
    node = calls.node = TieredNode(submit=calls.submit, abandon=calls.abandon)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    act(node)
    calls.lane = lane
    return node, calls


def states(node: TieredNode) -> set[RemoteSegmentState]:
    logs = node.broker.services.remote_logs
    assert logs is not None
    partition = logs.get(KEY)
    assert partition is not None
    return {segment.state for segment in partition.cache.all()}


def test_a_copy_that_hangs_is_ended_and_made_again() -> None:
    node, calls = hanging("copy")
    node.tick(30_000)
    assert len(calls.hung) == 1
    node.tick(COPY_END_MS - 1)
    assert calls.abandoned == []
    calls.lane = ""
    node.tick(1)
    assert len(calls.abandoned) == 1
    assert calls.hung
    for _ in range(2):
        node.run_tasks()
    assert states(node) == {RemoteSegmentState.COPY_SEGMENT_FINISHED}
    assert node.log().local_start_offset > 10


def test_the_files_of_a_copy_that_returns_after_its_end_are_deleted() -> None:
    node, calls = hanging("copy")
    node.tick(30_000)
    stem = node.remote_files()[0].rpartition(".")[0]
    again = list(node.remote_files())
    content = {name: node.files.read(f"/remote/kafka-tiered-storage/{name}") for name in again}
    node.tick(COPY_END_MS)
    for name, data in content.items():  # the hung copy writes its files after the deletion
        node.files.write(f"/remote/kafka-tiered-storage/{name}", data, sync=True)
    calls.let_return()
    assert not [name for name in node.remote_files() if name.startswith(stem)]


def test_a_read_that_hangs_is_an_error_of_its_partition_and_the_retry_is_a_new_read() -> None:
    node, calls = hanging("read", TieredNode.run_tasks)
    assert node.client.send(node.fetch_request(0), 12) == []
    node.tick(500)
    node.broker.take_replies()
    node.tick(CALL_MS)
    assert len(calls.abandoned) == 1
    assert node.fetch(0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    calls.lane = ""
    assert keys_of(node.fetch(0).records)[0] == 0


def test_a_deletion_that_hangs_is_repeated() -> None:
    node, calls = hanging("expiration", TieredNode.run_tasks)
    before = len(node.remote_files())
    assert node.alter({"retention.bytes": "1000"}).error_code == 0
    node.tick(30_000)
    assert len(calls.hung) == 1
    calls.lane = ""
    node.tick(240_000)
    node.run_tasks()
    assert len(node.remote_files()) < before
    assert states(node) == {RemoteSegmentState.COPY_SEGMENT_FINISHED}


class Failing:
    """A store whose copies fail, and the times at which they began."""

    def __init__(self) -> None:
        self.node: TieredNode | None = None
        self.began: list[int] = []

    def copy_segment(self, segment: RemoteSegment, files: object, timeout_ms: int) -> bytes | None:
        assert self.node is not None
        self.began.append(self.node.now_ms)
        raise RemoteStorageError("the store is full")

    def delete_segment(self, segment: RemoteSegment) -> None: ...


def test_failed_copies_are_made_again_after_growing_waits_up_to_the_limit() -> None:
    store = Failing()
    settings = {
        "remote.log.manager.task.retry.backoff.ms": "1000",
        "remote.log.manager.task.retry.backoff.max.ms": "8000",
        "remote.log.manager.task.retry.jitter": "0",
    }
    node = store.node = TieredNode(static=settings, store=store)  # type: ignore[arg-type]
    assert node.create().error_code == 0
    node.produce(6)
    for _ in range(60):
        node.tick(1_000)
    waits = [after - before for before, after in zip(store.began, store.began[1:], strict=False)]
    assert waits[:5] == [1_000, 2_000, 4_000, 8_000, 8_000]
