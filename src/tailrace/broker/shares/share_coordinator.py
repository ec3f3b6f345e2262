"""ShareCoordinator: the share coordinator of this broker. It keeps the delivery state of share groups.

A share partition is a group's view of a partition: `SharePartitionKey(group_id, topic_id, partition)`. Its state is
stored in `__share_group_state`, which is created at the first request. Each request gets one result, now or later:
`answer(response, now_ms)` or `refuse(KafkaError, now_ms)` is called.

    initialize(key, state_epoch, start_offset, …)   set or reset the start offset; -1: use share.auto.offset.reset
    read(key, leader_epoch, …)                      return the state to the partition's leader; fence older leaders
    write(key, ShareWrite(…), …)                    store the delivery states of records
    read_summary(key, …)                            return the PersistedState, or None if the state is not initialized
    delete(key, …)                                  delete the state

    FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH    a newer leader or a newer initialization exists
    INVALID_REQUEST                            the state was never initialized
    UNKNOWN_TOPIC_OR_PARTITION                 the topic was deleted
    COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR
                                               retry later

See `shares/state/`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinator_topics import SHARE_GROUP_STATE
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.partition_writer import PartitionWriter
from tailrace.coordinator.runtime import Answer, CoordinatorRuntime, Refuse
from tailrace.coordinator.shard import StateChange
from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.records.batch import Codec
from tailrace.replication.delayed_delete_records import delete_on_leader
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey, ShareWrite
from tailrace.shares.state.share_state_shard import ShareStateSettings, ShareStateShard
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)

R = TypeVar("R")


class ShareCoordinator:
    """The coordinator of `__share_group_state`. It wraps the runtime to delete superfluous records too."""

    topic = SHARE_GROUP_STATE

    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        partitions: HostedPartitions,
        purgatory: Purgatory,
        coordinators: Coordinators,
        appended: Callable[[TopicPartition, int], None],
        ensure_topic: Callable[[int], None],
        now_ms: int,
    ) -> None:
        self._ensure_topic = ensure_topic
        self._partitions = partitions
        self._coordinators = coordinators
        self._image = image
        settings = ShareStateSettings(
            updates_per_snapshot=config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
            cold_snapshot_ms=config.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )
        self.runtime: CoordinatorRuntime[ShareStateShard] = CoordinatorRuntime(
            SHARE_GROUP_STATE,
            PartitionWriter(partitions, appended),
            purgatory,
            lambda _, __: ShareStateShard(settings, image),
            write_timeout_ms=config.integer("share.coordinator.write.timeout.ms"),
            codec=Codec(config.integer("share.coordinator.state.topic.compression.codec")),
            reload=self.lead,
        )
        self._prune_ms = config.integer("share.coordinator.state.topic.prune.interval.ms")
        self._cold_ms = settings.cold_snapshot_ms
        self._next_prune_ms = now_ms + self._prune_ms
        self._next_cold_ms = now_ms + self._cold_ms
        self._pruned: dict[int, int] = {}  # by partition: the offset up to which records were deleted
        coordinators.add(self)

    # Requests

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        answer: Answer[ErrorCode],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        self._change(
            key, lambda shard: shard.initialize(key, state_epoch, start_offset, now_ms), answer, refuse, now_ms
        )

    def read(
        self, key: SharePartitionKey, leader_epoch: int, answer: Answer[PersistedState], refuse: Refuse, now_ms: int
    ) -> None:
        self._change(key, lambda shard: shard.read(key, leader_epoch, now_ms), answer, refuse, now_ms)

    def write(
        self, key: SharePartitionKey, write: ShareWrite, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int
    ) -> None:
        self._change(key, lambda shard: shard.write(key, write, now_ms), answer, refuse, now_ms)

    def read_summary(
        self, key: SharePartitionKey, answer: Answer[PersistedState | None], refuse: Refuse, now_ms: int
    ) -> None:
        self._change(key, lambda shard: StateChange((), shard.summary(key)), answer, refuse, now_ms)

    def delete(self, key: SharePartitionKey, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int) -> None:
        self._change(key, lambda shard: shard.delete(key), answer, refuse, now_ms)

    def _change(
        self,
        key: SharePartitionKey,
        operation: Callable[[ShareStateShard], StateChange[R]],
        answer: Answer[R],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        try:
            self._ensure_topic(now_ms)
        except KafkaError as error:
            _log.warning("%s cannot be created: %s", SHARE_GROUP_STATE, error)
            refuse(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{SHARE_GROUP_STATE} cannot be created"), now_ms)
            return
        index = self._coordinators.partition_of(SHARE_GROUP_STATE, str(key), self._image())
        self.runtime.write(index, operation, answer, refuse, now_ms)

    def coordinator_of(self, key: SharePartitionKey) -> BrokerId | None:
        """Return the broker that coordinates a share partition: -1 if there is none now, None without the topic."""
        image = self._image()
        index = self._coordinators.partition_of(SHARE_GROUP_STATE, str(key), image)
        return None if index < 0 else image.topics[SHARE_GROUP_STATE].partitions[index].leader

    def topics_deleted(self, topics: Sequence[TopicImage], now_ms: int) -> None:
        ids = frozenset(topic.id for topic in topics)
        self.runtime.change_all(lambda shard, _, now_ms: shard.forget_topics(ids), now_ms)

    # Leadership

    def lead(self, partition: int, now_ms: int) -> None:
        self.runtime.lead(partition, now_ms)

    def resign(self, partition: int, now_ms: int) -> None:
        self._pruned.pop(partition, None)
        self.runtime.resign(partition, now_ms)

    # Time

    def next_deadline_ms(self) -> int | None:
        if not self.runtime.partitions():
            return None  # this broker coordinates no share groups
        deadline_ms = self.runtime.next_deadline_ms()
        first_ms = min(self._next_prune_ms, self._next_cold_ms)
        return first_ms if deadline_ms is None else min(deadline_ms, first_ms)

    def tick(self, now_ms: int, is_turn_over: Callable[[], bool] = lambda: False) -> None:
        self.runtime.tick(now_ms, is_turn_over)
        if now_ms >= self._next_prune_ms:
            self._next_prune_ms = now_ms + self._prune_ms
            self._prune(now_ms)
        if now_ms >= self._next_cold_ms:
            self._next_cold_ms = now_ms + self._cold_ms
            self.runtime.change_all(lambda shard, _, now_ms: shard.snapshot_cold(now_ms), now_ms)

    def _prune(self, now_ms: int) -> None:
        """Delete records that later snapshots have replaced."""
        for index in self.runtime.partitions():
            try:
                offset = self.runtime.shard(index).superfluous_offset
            except KafkaError:
                continue  # the partition is being loaded, and is pruned next time
            if offset > 0 and self._pruned.get(index) != offset:
                key = TopicPartition(SHARE_GROUP_STATE, index)
                code = ErrorCode(delete_on_leader(self._partitions, key, offset, now_ms).response.error_code)
                if code is ErrorCode.NONE:
                    self._pruned[index] = offset
                else:
                    _log.warning("%s cannot be pruned up to offset %d: %s", key, offset, code.name)
