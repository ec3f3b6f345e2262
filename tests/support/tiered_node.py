"""A node in memory with tiered storage: its store is in the same files, in the layout of Kafka's LocalTieredStorage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.startup.environment import RemoteHost
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import TopicPartition
from tailrace.node.remote_host import remote_host
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from tailrace.records.batch import RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker
from tailrace.records.record import iter_records
from tailrace.tiers.steps import Work
from tailrace.tiers.stores.remote_store import RemoteStore
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.memory_node import NOW_MS, Client, start

REMOTE = "/remote"
TOPIC = "orders"
KEY = TopicPartition(TOPIC, 0)
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "rsm.config.dir": REMOTE,
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "log.initial.task.delay.ms": "0",
}
TIERED = {"remote.storage.enable": "true", "segment.bytes": "1048576", "internal.segment.bytes": "300"}


class TieredNode:
    """A broker with tiered storage. `store` may be replaced by one that fails."""

    def __init__(
        self,
        files: Files | None = None,
        static: Mapping[str, str] | None = None,
        store: RemoteStore | None = None,
        submit: Callable[[str, Work, int], None] | None = None,
        now_ms: int = NOW_MS,
        abandon: Callable[[str, Work], None] = lambda lane, work: None,
    ) -> None:
        self.files = files or MemoryFiles()
        self.now_ms = now_ms
        opened = remote_host(self.files, lambda call: True, lambda: self.now_ms).open_store
        open_store = opened if store is None else lambda name, settings: store
        host = RemoteHost(open_store, submit or self._run_at_once, abandon)
        self.broker: Broker = start(self.files, {**self.defaults(), **(static or {})}, now_ms=now_ms, remote=host)
        self.client = Client(self.broker)

    @staticmethod
    def defaults() -> dict[str, str]:
        """Return the settings that every node of this kind has."""
        return SETTINGS

    def _run_at_once(self, lane: str, work: Work, threads_max: int) -> None:
        try:
            result = work.run()
        except Exception as error:
            work.failed(error, self.now_ms)
        else:
            work.apply(result, self.now_ms)

    def copy_of_files(self) -> MemoryFiles:
        """Return the files as they are now, for a start after a crash at this moment."""
        assert isinstance(self.files, MemoryFiles)
        return memory_files(self.files.tree())

    # Time

    def tick(self, ms: int = 0) -> None:
        self.now_ms += ms
        self.client.now_ms = self.now_ms
        self.broker.tick(self.now_ms)

    def run_tasks(self) -> None:
        """Let every task of tiered storage run once, and then the local retention."""
        self.tick(30_000)
        self.tick(300_000)

    # Topics and records

    def create(self, settings: Mapping[str, str] | None = None, topic: str = TOPIC) -> Any:
        configs = [
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
            for name, value in {**TIERED, **(settings or {})}.items()
        ]
        new = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
        (result,) = self.client.ask(CreateTopicsRequest(topics=[new], timeout_ms=1_000), 7).topics
        self.tick()
        return result

    def alter(self, settings: Mapping[str, str], topic: str = TOPIC) -> Any:
        """Change settings of a topic. Return the response for it."""
        kind = IncrementalAlterConfigsRequest
        configs = [kind.AlterableConfig(name=name, config_operation=0, value=value) for name, value in settings.items()]
        resource = kind.AlterConfigsResource(resource_type=2, resource_name=topic, configs=configs)
        (result,) = self.client.ask(kind(resources=[resource]), 1).responses
        return result

    def delete(self, topic: str = TOPIC) -> int:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=topic)], timeout_ms=1_000)
        return int(self.client.ask(request, 6).responses[0].error_code)

    def produce(self, count: int, value: bytes = b"v" * 60, topic: str = TOPIC) -> None:
        """Append records, each a batch of its own with its offset as its key."""
        end = self.log(topic).log_end_offset
        for offset in range(end, end + count):
            self.produce_batch(self._batch(offset, value), topic)

    def _batch(self, offset: int, value: bytes) -> bytes:
        builder = BatchBuilder()
        builder.append(self.now_ms, str(offset).encode(), value)
        return builder.build()

    def append_transactional(self, producer_id: int) -> None:
        """Append a batch of an open transaction, which no coordinator knows."""
        batch = _transactional_batch(self.now_ms, producer_id)
        self.broker.services.partitions.find(KEY).append_as_leader(
            batch, required_acks=-1, now_ms=self.now_ms, origin=Origin.COORDINATOR
        )

    def produce_batch(self, batch: bytes, topic: str = TOPIC) -> None:
        part = ProduceRequest.PartitionProduceData(index=0, records=batch)
        data = [ProduceRequest.TopicProduceData(name=topic, partition_data=[part])]
        answer = self.client.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=data), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def fetch_request(self, offset: int, topic: str = TOPIC, **options: Any) -> FetchRequest:
        part = FetchRequest.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=options.pop("partition_max_bytes", 1_000_000)
        )
        known = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, "session_epoch": -1}
        return FetchRequest(topics=[FetchRequest.FetchTopic(topic=topic, partitions=[part])], **{**known, **options})

    def fetch(self, offset: int, topic: str = TOPIC, **options: Any) -> Any:
        """Return the answer of the partition."""
        return self.client.ask(self.fetch_request(offset, topic, **options), 12).responses[0].partitions[0]

    def offset_of(self, target: int, topic: str = TOPIC) -> tuple[int, int]:
        """Return the error code and the offset of ListOffsets for a time or a bound."""
        part = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=target)
        topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[part])]
        answer = self.client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 11).topics[0].partitions[0]
        return answer.error_code, answer.offset

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Append a marker, as the transaction coordinator does."""
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        marker = build_end_marker(
            EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=self.now_ms
        )
        partition = self.broker.services.partitions.find(KEY)
        partition.append_as_leader(marker, required_acks=-1, now_ms=self.now_ms, origin=Origin.COORDINATOR)

    # State

    def log(self, topic: str = TOPIC) -> PartitionLog:
        return self.broker.services.partitions.find(TopicPartition(topic, 0)).log

    def remote_files(self) -> list[str]:
        root = f"{REMOTE}/kafka-tiered-storage"
        if not self.files.exists(root):
            return []
        found = []
        for folder in self.files.entries(root):
            found += [f"{folder.name}/{one.name}" for one in self.files.entries(f"{root}/{folder.name}")]
        return sorted(found)


def keys_of(records: bytes) -> list[int]:
    """Return the keys of the whole batches; they are offsets."""
    found: list[int] = []
    position = 0
    while position + 12 <= len(records):
        size = int.from_bytes(records[position + 8 : position + 12], "big") + 12
        if position + size > len(records):
            break
        batch = RecordBatch(memoryview(bytes(records[position : position + size])))
        found += [int(record.key) for record in iter_records(batch) if record.key]
        position += size
    return found


def _transactional_batch(now_ms: int, producer_id: int) -> bytes:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    builder.append(now_ms, b"2", b"in a transaction")
    return builder.build()
