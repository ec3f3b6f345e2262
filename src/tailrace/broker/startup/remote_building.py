"""remote_parts: builds the services of tiered storage, if the broker has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.remote_config import RemoteConfig, is_tiered_topic
from tailrace.broker.coordination.partition_writer import PartitionWriter
from tailrace.broker.handling.throttling import windows_of
from tailrace.broker.startup.environment import Environment, RemoteHost
from tailrace.broker.storage.config_updates import ConfigUpdates
from tailrace.broker.storage.remote.metadata_snapshot import SnapshotFile
from tailrace.broker.storage.remote.metadata_topic import MetadataTopic
from tailrace.broker.storage.remote.remote_environment import RemoteEnvironment
from tailrace.broker.storage.remote.remote_logs import RemoteLogs
from tailrace.broker.storage.remote.remote_reads import ReadLimits, RemoteReads
from tailrace.broker.storage.remote.store_calls import StoreCalls
from tailrace.log.reading.log_read import LogRead
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.tiers.copying import CopySettings
from tailrace.tiers.reading.index_cache import IndexCache
from tailrace.waiting.purgatory import Purgatory

COPY_TIMEOUT_MS = 600_000  # a copy of a segment that takes longer is ended, and begun again later


class RemoteParts(NamedTuple):
    remote_logs: RemoteLogs | None
    remote_reads: RemoteReads | None
    store_calls: StoreCalls | None = None

    def read_now(
        self, key: TopicPartition, offset: Offset, max_bytes: int, wants_aborted: bool, now_ms: int
    ) -> LogRead | ErrorCode | None:
        """Read for a share group. Without tiered storage no offset is in a remote store."""
        if self.remote_reads is None:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return self.remote_reads.read_now(key, offset, max_bytes, wants_aborted, now_ms)


def remote_parts(
    environment: Environment,
    config: BrokerConfig,
    controller: LocalController | RemoteController,
    partitions: HostedPartitions,
    purgatory: Purgatory,
    appended: Callable[[TopicPartition, int], None],
    updates: ConfigUpdates,
    now_ms: int,
) -> RemoteParts:
    if config.remote is None or environment.remote is None or not isinstance(controller, LocalController):
        return RemoteParts(None, None)
    builder = _RemoteBuilder(environment, environment.remote, config, config.remote, controller)
    writer = PartitionWriter(partitions, appended)
    return builder.build(partitions, purgatory, writer, updates, now_ms)


class _RemoteBuilder:
    def __init__(
        self,
        environment: Environment,
        host: RemoteHost,
        config: BrokerConfig,
        remote: RemoteConfig,
        controller: LocalController,
    ) -> None:
        self._environment = environment
        self._host = host
        self._config = config
        self._remote = remote
        self._controller = controller

    def build(
        self,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        writer: PartitionWriter,
        updates: ConfigUpdates,
        now_ms: int,
    ) -> RemoteParts:
        remote, host = self._remote, self._host
        store = host.open_store(remote.store_class, remote.store_settings)
        indexes = IndexCache(
            self._environment.files,
            self._config.log_dirs[0],
            partial(self._integer, "remote.log.index.file.cache.total.size.bytes"),
            remote.index_ttl_ms,
            now_ms,
        )
        settings = CopySettings(
            files=self._environment.files,
            store=store,
            broker_id=self._config.node_id,
            new_id=self._environment.new_id,
            quota=self._quota("copy"),
            timeout_ms=COPY_TIMEOUT_MS,
            custom_metadata_bytes_max=remote.custom_metadata_bytes_max,
        )
        calls = StoreCalls(host.submit, host.abandon, self._threads_of, now_ms)
        environment = RemoteEnvironment(
            submit=calls.submit,
            is_turn_over=self._environment.is_turn_over,
            is_tiered=self._is_tiered,
            has_config_updates=lambda: updates.next_deadline_ms() is not None,
            pool_sizes=self._pool_sizes,
            task_interval_ms=remote.task_interval_ms,
            retry_ms=self._retry_ms,
        )
        file = SnapshotFile(self._environment.files, self._config.log_dirs[0])
        topic = MetadataTopic(remote, self._controller, writer, file)
        logs = RemoteLogs(partitions, topic, indexes, settings, environment, now_ms)
        submit_read = partial(calls.submit, "read")
        reads = RemoteReads(
            partitions, logs.get, indexes, store, self._quota("fetch"), purgatory, submit_read, self._read_limits
        )
        return RemoteParts(logs, reads, calls)

    def _integer(self, name: str) -> int:
        return self._config.current_integer(name, self._controller.image)

    def _quota(self, kind: str) -> ReplicationQuota:
        prefix = f"remote.log.manager.{kind}"
        limit = partial(self._integer, f"{prefix}.max.bytes.per.second")
        return ReplicationQuota(windows_of(self._config, f"{prefix}.quota.window"), limit)

    def _pool_sizes(self) -> tuple[int, int]:
        prefix = "remote.log.manager"
        return (
            self._integer(f"{prefix}.copier.thread.pool.size"),
            self._integer(f"{prefix}.expiration.thread.pool.size"),
        )

    def _read_limits(self) -> ReadLimits:
        return ReadLimits(
            self._integer("remote.fetch.max.wait.ms"),
            self._integer("remote.list.offsets.request.timeout.ms"),
            self._integer("remote.log.reader.threads"),
            self._integer("remote.log.reader.threads") + self._remote.reads_waiting_max,
        )

    def _retry_ms(self, failures: int) -> int:
        """Return the wait after the last of several failures in a row, with some jitter."""
        first, largest, jitter = self._remote.retry
        wait_ms = min(first << min(failures - 1, 40), largest)
        spread = int(wait_ms * jitter)
        return max(wait_ms - spread + self._environment.next_int(2 * spread + 1), 1)

    def _threads_of(self, lane: str) -> int:
        copiers, expirers = self._pool_sizes()
        return {"copy": copiers, "expiration": expirers, "read": self._integer("remote.log.reader.threads")}[lane]

    def _is_tiered(self, topic_id: TopicId) -> bool:
        image = self._controller.image
        topic = image.topics_by_id.get(topic_id.value.bytes)
        return topic is not None and is_tiered_topic(image, topic.name)
