"""RemoteLogs: the remote logs of the partitions that are hosted here, and the tasks on them.

    copy         of a leader, every remote.log.manager.task.interval.ms, unless remote.log.copy.disable is set
    expiration   of a leader, every remote.log.manager.task.interval.ms
    deletion     of a topic that is deleted or no longer tiered

A partition has at most one copy task and one expiration task at a time. All tasks together use as many threads as
remote.log.manager.copier.thread.pool.size and remote.log.manager.expiration.thread.pool.size allow. Nothing begins
before the metadata of the partition was read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

from tailrace.broker.storage.remote.metadata_topic import MetadataTopic
from tailrace.broker.storage.remote.remote_environment import RemoteEnvironment
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.tiers.copying import CopySettings, CustomMetadataTooLarge, MissingSnapshot, copy_segments
from tailrace.tiers.deletion import delete_all
from tailrace.tiers.expiration import expire_segments
from tailrace.tiers.reading.index_cache import IndexCache
from tailrace.tiers.remote_counters import RemoteCounters
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.steps import Beside, RemoteSteps, RemoteTask
from tailrace.tiers.stores.remote_store import RemoteStorageError, RetriableRemoteStorageError

_log = logging.getLogger(__name__)

_QUOTA_RETRY_MS: Final = 1_000
_DELETION_RETRY_MS: Final = 30_000
_TOPIC_RETRY_MS: Final = 1_000
_METADATA_POLL_MS: Final = 100  # while the metadata is read for the first time


class RemoteLogs:
    def __init__(
        self,
        partitions: HostedPartitions,
        topic: MetadataTopic,
        indexes: IndexCache,
        settings: CopySettings,
        environment: RemoteEnvironment,
        now_ms: int,
    ) -> None:
        self._hosted = partitions
        self._topic = topic
        self._indexes = indexes
        self._settings = settings
        self._environment = environment
        self._partitions: dict[TopicPartition, RemotePartition] = {}
        self.counters: dict[str, RemoteCounters] = {}  # by topic
        self.past = RemoteCounters()  # of deleted topics, and of the deletions of whole remote logs
        self._deletions: dict[tuple[TopicId, int], int] = {}  # remote logs to delete, and when to begin
        self._deleting: set[tuple[TopicId, int]] = set()
        self._busy: Counter[tuple[TopicId, int]] = Counter()  # remote logs with running copies and expirations
        self._running = {"copy": 0, "expiration": 0}
        self._checks_orphans = True  # once, after the start
        self._changed: set[str] = set()  # topics whose settings have changed
        self._ticked_ms = now_ms
        self._topic_due_ms = now_ms
        self._limited_log = LimitedLog(_log)
        self._is_saving = False

    def get(self, key: TopicPartition) -> RemotePartition | None:
        return self._partitions.get(key)

    def __iter__(self) -> Iterator[RemotePartition]:
        return iter(list(self._partitions.values()))

    # Changes of the metadata

    def hosted(self, partition: Partition, state: PartitionRegistration, now_ms: int) -> None:
        """Begin with a partition, or continue in its new role."""
        if not partition.log.is_tiered:
            return
        known = self._partitions.get(partition.key)
        if known is None or known.hosted is not partition:
            known = self._begin(partition)
        if partition.is_leader and not known.is_leader:
            known.become_leader(now_ms)
        elif not partition.is_leader:
            known.resign()

    def _begin(self, partition: Partition) -> RemotePartition:
        assert partition.log.topic_id is not None
        counters = self.counters.setdefault(partition.key.topic, RemoteCounters())
        place = partition.log.topic_id, partition.key.partition
        is_ready = partial(self._topic.is_ready, *place)
        made = RemotePartition(
            partition.key, partition.log.topic_id, partition, counters, self._topic.cache_of(*place), is_ready
        )
        self._partitions[partition.key] = made
        return made

    def deleted(self, key: TopicPartition, now_ms: int) -> None:
        """Stop with a partition that is no longer hosted here."""
        known = self._partitions.pop(key, None)
        if known is not None:
            known.stop()

    def topics_deleted(self, topics: Sequence[TopicImage], now_ms: int) -> None:
        """Delete the remote logs of topics that are deleted."""
        for topic in topics:
            for number in topic.partitions:
                place = topic.topic_id, number
                if len(self._topic.cache_of(*place)) or place in self._busy or not self._topic.is_read():
                    self._deletions[place] = now_ms
                else:
                    self._topic.forget(*place)
            counters = self.counters.pop(topic.name, None)
            if counters is not None:
                self.past.add(counters)

    def configured(self, image: MetadataImage, names: Collection[str]) -> None:
        """Note topics whose settings have changed. The next tick begins or stops with their partitions."""
        self._changed.update(names)

    def _apply_settings(self, now_ms: int) -> None:
        """Begin or stop with partitions for which tiered storage was enabled or disabled."""
        if not self._changed or self._environment.has_config_updates():
            return
        changed, self._changed = self._changed, set()
        for partition in self._hosted:
            if partition.key.topic not in changed:
                continue
            known = self._partitions.get(partition.key)
            if partition.log.is_tiered and known is None:
                known = self._begin(partition)
                if partition.is_leader:
                    known.become_leader(now_ms)
            elif not partition.log.is_tiered and known is not None:
                self._disable(partition, known, now_ms)

    def _disable(self, partition: Partition, known: RemotePartition, now_ms: int) -> None:
        """Delete the remote log of a topic for which tiered storage is disabled. The log then starts locally."""
        self.deleted(partition.key, now_ms)
        if known.is_leader:
            log = partition.log
            log.delete_records(min(log.local_start_offset, log.high_watermark), now_ms)
            log.reset_highest_remote_offset()
            self._deletions[known.topic_id, partition.key.partition] = now_ms

    # Tasks

    def tick(self, now_ms: int) -> None:
        self._ticked_ms = now_ms
        self._apply_settings(now_ms)
        if self._partitions and not self._has_topic(now_ms):
            return
        is_turn_over = self._environment.is_turn_over
        if not self._topic.partition_count or not self._topic.read_all(now_ms, is_turn_over):
            return
        if not self._topic.is_read():
            return
        if self._checks_orphans:
            self._checks_orphans = False
            self._find_orphans(now_ms)
        self._start_deletions(now_ms)
        self._start_tasks(now_ms)
        if self._topic.is_snapshot_due and not self._is_saving:
            self._save(now_ms)
        self._indexes.expire(now_ms)

    def _save(self, now_ms: int) -> None:
        """Write a snapshot of the metadata on a worker thread."""
        self._is_saving = True
        write = self._topic.take_snapshot()

        def steps() -> RemoteSteps[None]:
            yield Beside(write)

        self._start(steps(), "expiration", self._saved, now_ms)

    def _saved(self, result: None, error: BaseException | None, now_ms: int) -> None:
        self._is_saving = False
        if error is not None:
            _report("the snapshot of the remote metadata could not be written", error)

    def close(self) -> None:
        """Write a snapshot of the metadata for the next start."""
        if not self._is_saving:
            self._topic.save()

    def _has_topic(self, now_ms: int) -> bool:
        """Create the topic of the metadata unless it exists. Return False if it cannot be created yet."""
        if self._topic.partition_count:
            return True
        if now_ms < self._topic_due_ms:
            return False
        try:
            self._topic.ensure(now_ms)
        except KafkaError as error:
            self._topic_due_ms = now_ms + _TOPIC_RETRY_MS
            text = f"__remote_log_metadata cannot be created: {error}"
            self._limited_log.write(logging.WARNING, "topic", now_ms, text)
            return False
        return True

    def next_deadline_ms(self) -> int | None:
        if self._changed or (self._topic.partition_count and not self._topic.is_read()):
            return self._ticked_ms + _METADATA_POLL_MS
        if self._partitions and not self._topic.partition_count:
            return max(self._topic_due_ms, self._ticked_ms + _METADATA_POLL_MS)
        copiers, expirers = self._environment.pool_sizes()
        due = [ms for known, ms in self._deletions.items() if self._may_delete(known)]
        if self._running["copy"] < copiers:
            due += [one.next_copy_ms for one in self._partitions.values() if self._may_copy(one)]
        if self._running["expiration"] < expirers:
            due += [one.next_expiration_ms for one in self._partitions.values() if self._may_expire(one)]
        return min(due, default=None)

    def _find_orphans(self, now_ms: int) -> None:
        """Delete remote logs of topics that do not exist or are no longer tiered: the broker stopped before their
        deletion ended."""
        for topic_id, number in self._topic.partitions_with_segments():
            if not self._environment.is_tiered(topic_id):
                self._deletions.setdefault((topic_id, number), now_ms)

    def _start_deletions(self, now_ms: int) -> None:
        for known, due_ms in list(self._deletions.items()):
            if due_ms > now_ms or not self._may_delete(known):
                continue
            self._deleting.add(known)
            segments = self._topic.cache_of(*known).all()
            steps = delete_all(
                self._settings.store, segments, self._settings.broker_id, self.past, self._indexes.forget, now_ms
            )
            self._start(steps, "expiration", partial(self._deletion_ended, known), now_ms)

    def _may_delete(self, known: tuple[TopicId, int]) -> bool:
        """Return True if no task is running that could still add segments or delete them."""
        return known not in self._deleting and known not in self._busy

    def _deletion_ended(
        self, known: tuple[TopicId, int], result: int | None, error: BaseException | None, now_ms: int
    ) -> None:
        self._deleting.discard(known)
        if error is None and not len(self._topic.cache_of(*known)):
            del self._deletions[known]
            if not self._environment.is_tiered(known[0]):
                self._topic.forget(*known)
            return
        if error is not None:
            _report(f"the remote log of partition {known[1]} of topic {known[0]} could not be deleted", error)
        self._deletions[known] = now_ms + (_DELETION_RETRY_MS if error is not None else 0)

    def _start_tasks(self, now_ms: int) -> None:
        """Start the tasks that are due, as long as there are threads for them."""
        copiers, expirers = self._environment.pool_sizes()
        for one in list(self._partitions.values()):
            if self._may_copy(one) and one.next_copy_ms <= now_ms and self._running["copy"] < copiers:
                self._copy(one, now_ms)
            if self._may_expire(one) and one.next_expiration_ms <= now_ms and self._running["expiration"] < expirers:
                self._expire(one, now_ms)

    def _may_copy(self, one: RemotePartition) -> bool:
        is_allowed = one.is_leader and one.log.is_copied and not one.copies_are_refused
        return is_allowed and not one.is_copying and one.place not in self._deletions

    def _may_expire(self, one: RemotePartition) -> bool:
        return one.is_leader and not one.is_expiring and one.place not in self._deletions

    def _copy(self, one: RemotePartition, now_ms: int) -> None:
        one.begin_copies()
        self._busy[one.place] += 1
        self._start(copy_segments(one, self._settings, now_ms), "copy", partial(self._copy_ended, one), now_ms)

    def _copy_ended(
        self, one: RemotePartition, was_complete: bool | None, error: BaseException | None, now_ms: int
    ) -> None:
        self._end_of_task(one)
        one.count_copy_failures(error is not None)
        wait_ms = self._environment.task_interval_ms
        if error is not None:
            _report(f"{one.key}: segments could not be copied to the remote store", error)
            wait_ms = self._environment.retry_ms(one.copy_failures)
        elif not was_complete:
            wait_ms = _QUOTA_RETRY_MS
        one.end_copies(now_ms + wait_ms)

    def _expire(self, one: RemotePartition, now_ms: int) -> None:
        one.begin_expiration()
        self._busy[one.place] += 1
        steps = expire_segments(one, self._settings.store, self._settings.broker_id, self._indexes.forget, now_ms)
        self._start(steps, "expiration", partial(self._expiration_ended, one), now_ms)

    def _expiration_ended(
        self, one: RemotePartition, deleted: int | None, error: BaseException | None, now_ms: int
    ) -> None:
        self._end_of_task(one)
        one.count_expiration_failures(error is not None)
        wait_ms = self._environment.task_interval_ms
        if error is not None:
            _report(f"{one.key}: remote segments could not be deleted", error)
            wait_ms = self._environment.retry_ms(one.expiration_failures)
        one.end_expiration(now_ms + wait_ms)

    def _end_of_task(self, one: RemotePartition) -> None:
        self._busy[one.place] -= 1
        if not self._busy[one.place]:
            del self._busy[one.place]

    def _start(
        self,
        steps: RemoteSteps[Any],
        lane: str,
        ended: Callable[[Any, BaseException | None, int], None],
        now_ms: int,
    ) -> None:
        self._running[lane] += 1

        def end(result: Any, error: BaseException | None, at_ms: int) -> None:
            self._running[lane] -= 1
            ended(result, error, at_ms)

        RemoteTask(steps, partial(self._environment.submit, lane), self._topic.publish, end).start(now_ms)


def _report(what: str, error: BaseException) -> None:
    """Log an error of a task. The task is repeated."""
    if isinstance(error, RetriableRemoteStorageError):
        _log.info("%s yet: %s", what, error)
    elif isinstance(error, RemoteStorageError | KafkaError | CustomMetadataTooLarge | MissingSnapshot | OSError):
        _log.warning("%s: %s", what, error)
    else:
        _log.error("%s: %s", what, error, exc_info=error)
