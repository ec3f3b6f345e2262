"""Tiered storage with a store that fails, is slow or forgets, and with a broker that stops at any step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tailrace.tiers.steps import Work
from tailrace.tiers.stores.local_store import LocalStore
from tailrace.tiers.stores.remote_store import (
    IndexKind,
    RemoteResourceNotFound,
    RemoteStorageError,
    RetriableRemoteStorageError,
    SegmentFiles,
)
from tests.support.memory_files import MemoryFiles
from tests.support.tiered_node import KEY, REMOTE, TieredNode, keys_of


class FaultyStore:
    """A store whose verbs raise an error while it is set."""

    def __init__(self, files: MemoryFiles) -> None:
        self._store = LocalStore(REMOTE, files, lambda: 0)
        self.errors: dict[str, RemoteStorageError] = {}
        self.custom_metadata: bytes | None = None
        self.copied = 0

    def _check(self, verb: str) -> None:
        if verb in self.errors:
            raise self.errors[verb]

    def copy_segment(self, segment: RemoteSegment, files: SegmentFiles, timeout_ms: int) -> bytes | None:
        self.copied += 1
        self._store.copy_segment(segment, files, timeout_ms)
        self._check("copy")
        return self.custom_metadata

    def fetch_segment(self, segment: RemoteSegment, start: int, end: int | None = None) -> bytes:
        self._check("fetch")
        return self._store.fetch_segment(segment, start, end)

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        self._check("index")
        return self._store.fetch_index(segment, kind)

    def delete_segment(self, segment: RemoteSegment) -> None:
        self._check("delete")
        self._store.delete_segment(segment)


def faulty(count: int = 20, **settings: str) -> tuple[TieredNode, FaultyStore]:
    files = MemoryFiles()
    store = FaultyStore(files)
    node = TieredNode(files, store=store)
    assert node.create({"local.retention.bytes": "1", **settings}).error_code == 0
    node.produce(count)
    return node, store


def states(node: TieredNode) -> set[RemoteSegmentState]:
    logs = node.broker.services.remote_logs
    assert logs is not None
    partition = logs.get(KEY)
    assert partition is not None
    return {segment.state for segment in partition.cache.all()}


def read_all(node: TieredNode) -> list[int]:
    found: list[int] = []
    start, end = node.log().log_start_offset, node.log().high_watermark
    while start < end:
        answer = node.fetch(start)
        assert answer.error_code == 0
        keys = [key for key in keys_of(answer.records) if key >= start]
        assert keys, start
        found += keys
        start = keys[-1] + 1
    return found


def test_a_failed_copy_is_deleted_and_tried_again() -> None:
    node, store = faulty()
    store.errors["copy"] = RemoteStorageError("the store is full")
    node.run_tasks()
    assert store.copied >= 1
    assert node.remote_files() == []
    assert node.log().local_start_offset == 0, "nothing is deleted that is not in the store"
    store.errors.clear()
    node.run_tasks()
    assert node.log().local_start_offset > 10
    assert states(node) == {RemoteSegmentState.COPY_SEGMENT_FINISHED}
    assert read_all(node) == list(range(20))


def test_the_rest_of_a_copy_that_was_only_late_is_deleted() -> None:
    node, store = faulty()
    store.errors["copy"] = RetriableRemoteStorageError("too many requests")
    node.run_tasks()
    store.errors.clear()
    node.run_tasks()
    node.run_tasks()
    assert states(node) == {RemoteSegmentState.COPY_SEGMENT_FINISHED}
    files = {name.rpartition(".")[0] for name in node.remote_files()}
    logs = node.broker.services.remote_logs
    assert logs is not None
    assert len(files) == len(logs.get(KEY).cache.all())  # type: ignore[union-attr]


def test_too_much_custom_metadata_ends_the_copies() -> None:
    node, store = faulty()
    store.custom_metadata = b"x" * 129
    node.run_tasks()
    node.run_tasks()
    assert store.copied == 1
    assert node.remote_files() == []


def test_a_failed_deletion_is_repeated() -> None:
    node, store = faulty()
    node.run_tasks()
    before = node.remote_files()
    store.errors["delete"] = RemoteStorageError("the store is read only")
    node.alter({"retention.bytes": "1000"})
    node.run_tasks()
    assert node.remote_files() == before
    assert RemoteSegmentState.DELETE_SEGMENT_STARTED in states(node)
    store.errors.clear()
    node.run_tasks()
    assert len(node.remote_files()) < len(before)
    assert states(node) == {RemoteSegmentState.COPY_SEGMENT_FINISHED}


@pytest.mark.parametrize("verb", ["fetch", "index"])
def test_a_read_that_fails_is_an_error_of_its_partition(verb: str) -> None:
    node, store = faulty()
    node.run_tasks()
    store.errors[verb] = RemoteResourceNotFound("there is no such segment")
    assert node.fetch(0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    store.errors.clear()
    assert read_all(node) == list(range(20))


class SlowWork:
    """Reads that wait until the test runs them."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, Work]] = []
        self.is_slow = False

    def submit(self, lane: str, work: Work, threads_max: int) -> None:
        if self.is_slow and lane == "read":
            self.waiting.append((lane, work))
            return
        self.run(work)

    @staticmethod
    def run(work: Work, now_ms: int = 1_700_000_000_000) -> None:
        try:
            result = work.run()
        except Exception as error:
            work.failed(error, now_ms)
        else:
            work.apply(result, now_ms)

    def run_all(self) -> None:
        while self.waiting:
            self.run(self.waiting.pop(0)[1])


def slow() -> tuple[TieredNode, SlowWork]:
    work = SlowWork()
    node = TieredNode(submit=work.submit)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    work.is_slow = True
    return node, work


def test_a_fetch_waits_for_the_store_without_holding_others() -> None:
    node, work = slow()
    assert node.client.send(node.fetch_request(0), 12) == []
    assert keys_of(node.fetch(19).records) == [19], "local records are served meanwhile"
    work.run_all()
    (reply,) = node.broker.take_replies()
    answer = node.client.decode(reply, 1, 12).responses[0].partitions[0]
    assert keys_of(answer.records)[0] == 0


def test_a_read_that_is_late_serves_the_retry() -> None:
    node, work = slow()
    assert node.client.send(node.fetch_request(0), 12) == []
    node.tick(500)
    (reply,) = node.broker.take_replies()
    answer = node.client.decode(reply, 1, 12).responses[0].partitions[0]
    assert (answer.error_code, answer.records) == (0, b"")
    work.run_all()
    assert keys_of(node.fetch(0).records)[0] == 0, "at once, from the read that was late"
    assert work.waiting == []


def test_remote_reads_above_the_limit_are_refused() -> None:
    work = SlowWork()
    node = TieredNode(
        static={"remote.log.reader.threads": "1", "remote.log.reader.max.pending.tasks": "1"}, submit=work.submit
    )
    node.create({"local.retention.bytes": "1"})
    node.produce(20)
    node.run_tasks()
    work.is_slow = True
    for offset in (0, 2):
        assert node.client.send(node.fetch_request(offset), 12) == []
    assert node.fetch(4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


class Crashes:
    """Takes a copy of the files before and after each step on a worker thread."""

    def __init__(self) -> None:
        self.node: TieredNode | None = None
        self.states: list[MemoryFiles] = []

    def submit(self, lane: str, work: Work, threads_max: int) -> None:
        self._note()
        result = work.run()
        self._note()
        assert self.node is not None
        work.apply(result, self.node.now_ms)

    def _note(self) -> None:
        assert self.node is not None
        self.states.append(self.node.copy_of_files())


def crashed(act: Callable[[TieredNode], Any]) -> tuple[list[MemoryFiles], int]:
    """Return the files at each step of an act."""
    crashes = Crashes()
    node = crashes.node = TieredNode(submit=crashes.submit)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(12)
    act(node)
    assert len(crashes.states) > 4
    return crashes.states, node.now_ms


def known_files(node: TieredNode) -> set[str]:
    logs = node.broker.services.remote_logs
    assert logs is not None
    partition = logs.get(KEY)
    return set() if partition is None else {one.segment_id.text for one in partition.cache.all()}


def test_after_a_crash_at_any_step_of_copies_nothing_is_lost_or_left() -> None:
    found, now_ms = crashed(TieredNode.run_tasks)
    for files in found:
        node = TieredNode(files, now_ms=now_ms + 1_000)
        node.tick(100)
        assert read_all(node) == list(range(12))
        node.run_tasks()
        node.run_tasks()
        assert read_all(node) == list(range(12))
        assert states(node) == {RemoteSegmentState.COPY_SEGMENT_FINISHED}
        assert {name.rpartition("/")[2][21:43] for name in node.remote_files()} == known_files(node)


def test_after_a_crash_at_any_step_of_an_expiration_nothing_is_left() -> None:
    def expire(node: TieredNode) -> None:
        node.run_tasks()
        node.alter({"retention.bytes": "500"})
        node.run_tasks()

    found, now_ms = crashed(expire)
    for files in found:
        node = TieredNode(files, now_ms=now_ms + 1_000)
        for _ in range(3):
            node.run_tasks()
        assert read_all(node) == list(range(node.log().log_start_offset, 12))
        assert {name.rpartition("/")[2][21:43] for name in node.remote_files()} == known_files(node)


def test_after_a_crash_at_any_step_of_a_deleted_topic_nothing_is_left() -> None:
    def delete(node: TieredNode) -> None:
        node.run_tasks()
        node.delete()
        node.run_tasks()

    found, now_ms = crashed(delete)
    is_deleted = 0
    for files in found:
        node = TieredNode(files, now_ms=now_ms + 1_000)
        for _ in range(3):
            node.run_tasks()
        if node.broker.services.partitions.get(KEY) is None:
            assert node.remote_files() == []
            is_deleted += 1
    assert is_deleted > 2
