"""Reads over both tiers: several partitions at once, share groups, quotas, pools of threads, incomplete objects."""

from __future__ import annotations

from typing import Any

from tailrace.log.disk.files import Files
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import FetchRequest, IncrementalAlterConfigsRequest, ShareFetchRequest
from tailrace.shares.state.persisted_state import SharePartitionKey
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.steps import Work
from tailrace.tiers.stores.local_store import LocalStore
from tests.support.memory_files import MemoryFiles
from tests.support.tiered_node import REMOTE, TOPIC, TieredNode, keys_of

OTHER = "payments"


def tiered(node: TieredNode | None = None, **settings: str) -> TieredNode:
    node = node or TieredNode()
    assert node.create({"local.retention.bytes": "1", **settings}).error_code == 0
    node.produce(20)
    node.run_tasks()
    assert node.log().local_start_offset > 10
    return node


def fetch_both(node: TieredNode, first: int, second: int, **options: Any) -> list[Any]:
    """Return the answers for an offset of each topic, from one Fetch."""
    asked = [
        FetchRequest.FetchTopic(
            topic=topic,
            partitions=[FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)],
        )
        for topic, offset in ((TOPIC, first), (OTHER, second))
    ]
    settings = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, "session_epoch": -1, **options}
    response = node.client.ask(FetchRequest(topics=asked, **settings), 12)
    return [topic.partitions[0] for topic in response.responses]


def with_two_topics() -> TieredNode:
    node = tiered()
    assert node.create({"local.retention.bytes": "1"}, topic=OTHER).error_code == 0
    node.produce(20, topic=OTHER)
    node.run_tasks()
    return node


def test_one_fetch_reads_several_partitions_from_the_store() -> None:
    node = with_two_topics()
    answers = fetch_both(node, 0, 4)
    assert [keys_of(answer.records)[0] for answer in answers] == [0, 4]
    assert [answer.error_code for answer in answers] == [0, 0]


def test_one_fetch_reads_one_partition_from_the_store_and_one_from_the_disk() -> None:
    node = with_two_topics()
    remote, local = fetch_both(node, 2, 19)
    assert keys_of(remote.records)[0] == 2
    assert keys_of(local.records) == [19]


def test_above_the_size_of_a_fetch_each_remote_partition_gets_one_batch_as_in_kafka() -> None:
    node = with_two_topics()
    first, second = fetch_both(node, 0, 0, max_bytes=150)
    assert (len(first.records), keys_of(first.records)) == (150, [0])
    assert len(second.records) < 150
    assert keys_of(second.records) == [0]


def test_the_failure_of_one_partition_leaves_the_others_alone() -> None:
    node = with_two_topics()
    for name in node.remote_files():
        if name.startswith(f"{TOPIC}-") and name.endswith(".log"):
            node.files.remove(f"{REMOTE}/kafka-tiered-storage/{name}")
    failed, read = fetch_both(node, 0, 0)
    assert failed.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert keys_of(read.records)[0] == 0


class Member:
    """A member of a share group at partition 0."""

    def __init__(self, node: TieredNode) -> None:
        self.node = node
        self.topic_id = node.broker.services.controller.image.topics[TOPIC].id
        self.epoch = 0
        node.broker.services.share_coordinator.initialize(
            SharePartitionKey("workers", self.topic_id, 0), 0, 0, lambda *_: None, lambda *_: None, node.now_ms
        )

    def acquire(self, accepted: tuple[int, int] | None = None) -> tuple[int, int] | None:
        """Accept a range, and return the next acquired one."""
        kind = ShareFetchRequest
        acks = [] if accepted is None else [
            kind.AcknowledgementBatch(first_offset=accepted[0], last_offset=accepted[1], acknowledge_types=[1])
        ]  # fmt: skip
        partition = kind.FetchPartition(partition_index=0, acknowledgement_batches=acks)
        request = kind(
            group_id="workers",
            member_id="one",
            share_session_epoch=self.epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=[kind.FetchTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        answer = self.node.client.ask(request, 2)
        assert answer.error_code == 0
        self.epoch += 1
        ranges = answer.responses[0].partitions[0].acquired_records if answer.responses else []
        return (ranges[0].first_offset, ranges[-1].last_offset) if ranges else None


def test_a_share_group_gets_every_record_of_both_tiers_once() -> None:
    node = tiered()
    member = Member(node)
    found: list[int] = []
    last: tuple[int, int] | None = None
    for _ in range(60):
        last = member.acquire(last)
        if last is not None:
            found += range(last[0], last[1] + 1)
    assert found == list(range(20))


def test_reads_above_the_quota_wait_while_local_records_are_served() -> None:
    node = tiered(TieredNode(static={"remote.log.manager.fetch.max.bytes.per.second": "50"}))
    assert keys_of(node.fetch(0).records)
    throttled = node.fetch(2)
    assert (throttled.error_code, throttled.records) == (0, b"")
    assert keys_of(node.fetch(19).records) == [19]
    node.tick(60_000)
    assert keys_of(node.fetch(2).records)[0] == 2


def test_copies_above_the_quota_are_made_later() -> None:
    node = TieredNode(static={"remote.log.manager.copy.max.bytes.per.second": "50"})
    assert node.create().error_code == 0
    node.produce(20)
    node.tick(30_000)
    first = len(node.remote_files())
    assert 0 < first < 40
    node.tick(1_000)
    assert len(node.remote_files()) == first
    for _ in range(30):
        node.tick(20_000)
    assert node.log().highest_remote_offset >= 17


class Threads:
    """Notes the sizes of the lanes."""

    def __init__(self) -> None:
        self.node: TieredNode | None = None
        self.sizes: dict[str, int] = {}

    def submit(self, lane: str, work: Work, threads_max: int) -> None:
        self.sizes[lane] = threads_max
        assert self.node is not None
        self.node._run_at_once(lane, work, threads_max)


def test_the_sizes_of_the_pools_can_be_changed_while_the_broker_runs() -> None:
    threads = Threads()
    node = threads.node = TieredNode(submit=threads.submit)
    tiered(node)
    node.fetch(0)
    assert threads.sizes == {"copy": 10, "read": 10}
    kind = IncrementalAlterConfigsRequest
    configs = [
        kind.AlterableConfig(name=name, config_operation=0, value="3")
        for name in ("remote.log.manager.copier.thread.pool.size", "remote.log.reader.threads")
    ]
    resource = kind.AlterConfigsResource(resource_type=4, resource_name="", configs=configs)
    assert node.client.ask(kind(resources=[resource]), 1).responses[0].error_code == 0
    node.produce(4)
    node.run_tasks()
    node.fetch(0)
    assert threads.sizes == {"copy": 3, "read": 3}


def test_after_an_election_nothing_within_retention_bytes_is_deleted() -> None:
    node = TieredNode()
    assert node.create().error_code == 0
    node.produce(20)
    node.run_tasks()
    size = node.log().size
    read_only = {"remote.log.copy.disable": "true", "retention.bytes": str(size), "local.retention.bytes": "-2"}
    assert node.alter(read_only).error_code == 0
    assert node.log().local_start_offset == 0, "the segments are in both tiers"
    again = TieredNode(node.copy_of_files(), now_ms=node.now_ms + 1_000)
    again.tick(100)
    again.run_tasks()
    assert again.log().log_start_offset == 0
    assert keys_of(again.fetch(0).records)[0] == 0


class Incomplete(LocalStore):
    """A store whose objects lose their last bytes."""

    def __init__(self, files: Files) -> None:
        super().__init__(REMOTE, files, lambda: 0)
        self.size: int | None = None  # of every object

    def fetch_segment(self, segment: RemoteSegment, start: int, end: int | None = None) -> bytes:
        data = super().fetch_segment(segment, 0)[: self.size]
        return data[start:end]


def test_an_incomplete_object_is_an_error_and_not_the_end_of_the_log() -> None:
    files = MemoryFiles()
    store = Incomplete(files)
    node = tiered(TieredNode(files, store=store))
    for size in (0, 10, 70, 200):
        store.size = size
        assert node.fetch(1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert node.offset_of(node.now_ms - 10_000_000)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    store.size = None
    assert keys_of(node.fetch(1).records)[0] == 1
