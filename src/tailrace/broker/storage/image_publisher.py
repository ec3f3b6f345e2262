"""ImagePublisher: applies changes of the metadata to the partitions hosted here.

It creates, reconfigures and deletes partitions, and makes them leaders or followers. The response to a request that
changes the metadata is sent after the change is applied, so a client can use a topic as soon as its creation is
confirmed. Most changes are applied at once. The logs of new partitions take longer (`new_replicas.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.events import Events
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.storage.new_replicas import NewReplicas
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.new_logs import NewLog
from tailrace.log.partition_log import PartitionLog
from tailrace.metadata.image.image import (
    ALL_BROKERS,
    EMPTY_IMAGE,
    ConfigResource,
    MetadataImage,
    ResourceType,
    broker_resource,
)
from tailrace.metadata.image.loader import Change
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_LEADER_EPOCH, TopicPartition
from tailrace.model.log_fields import fields
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.replication.replica_settings import ReplicaSettings
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)

HOSTED_AT_ONCE = 200  # if a change adds more partitions, their logs are created in groups


class ImagePublisher:
    def __init__(
        self,
        config: BrokerConfig,
        logs: LogDirectories,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        replicas: ReplicaSettings,
        throttling: Throttling,
        coordinators: Coordinators,
        events: Events,
    ) -> None:
        self._config = config
        self._broker_id = config.node_id
        self._logs = logs
        self._partitions = partitions
        self._purgatory = purgatory
        self._replicas = replicas
        self._throttling = throttling
        self._coordinators = coordinators
        self._events = events
        self._image = EMPTY_IMAGE  # the latest published image
        self._is_starting = True
        self._new = NewReplicas(logs, self._host_announced, self._log_created, self._partitions.mark_offline, purgatory)
        self.when_hosted = self._new.when_created  # calls back when the partitions of some topics can be used
        self.is_new = self._new.__contains__  # True if the log of a partition is not created yet

    # The first image

    def start(self, image: MetadataImage, now_ms: int) -> None:
        """Host the partitions of the first image. Logs of unknown partitions are renamed as strays."""
        self._image = image
        self._throttling.update(image.client_quotas)
        self._events.acls_changed(image.acls)
        for topic, number, state in image.partitions():
            if self._broker_id in state.replicas:
                self._host(image, TopicPartition(topic.name, number), topic.id, state, now_ms)
        self._new.create(now_ms, at_once=True)
        for directory in self._logs.directories:
            for key in [key for key in directory.logs if self._partitions.get(key) is None]:
                _log.warning("%s is not in the metadata: its folder is renamed %s", key, directory.mark_stray(key))
        self._is_starting = False

    # Changes

    def publish(self, change: Change, now_ms: int) -> None:
        delta, image = change
        self._image = image
        _log_topics(change)
        local = delta.local_changes(self._broker_id)
        self._delete([key for key, _ in local.deleted], now_ms)
        replicas = [*local.leaders, *local.followers]
        are_many = len(replicas) > HOSTED_AT_ONCE
        for replica in replicas:
            key = replica.partition
            if are_many and replica.before is None and self._partitions.get(key) is None and key not in self._new:
                self._new.announce(key)
            else:
                self._host(image, key, replica.topic_id, replica.now, now_ms)
        self._new.create(now_ms)
        self._reconfigure(change)
        if delta.topics.deleted:
            self._events.topics_deleted(list(delta.topics.deleted.values()), now_ms)
        if delta.client_quotas:
            self._throttling.update(delta.client_quotas)
        if delta.acls:
            self._events.acls_changed(delta.acls)

    def _host_announced(self, key: TopicPartition, now_ms: int) -> None:
        """Host an announced partition according to the current metadata."""
        image = self._image
        topic, state = image.topics.get(key.topic), image.partition(key)
        if topic is not None and state is not None and self._broker_id in state.replicas:
            self._host(image, key, topic.id, state, now_ms)

    def _host(
        self, image: MetadataImage, key: TopicPartition, topic_id: bytes, state: PartitionRegistration, now_ms: int
    ) -> None:
        partition = self._partitions.get(key)
        if partition is None:
            if key in self._new:
                return  # it gets its role, from the metadata of that time, when its log is created
            log = None if key in self._partitions.offline else self._log_of(image, key)
            if log is None:
                if key not in self._new:
                    self._partitions.mark_offline(key)
                return
            if self._is_starting:
                known = self._logs.directory_of(log).high_watermarks.get(key)
                if known is not None:
                    log.advance_high_watermark(known)  # the last checkpointed value
            partition = Partition(log, self._replicas, topic_id)
            self._partitions.add(partition)
        if state.leader == self._broker_id:
            if partition.make_leader(state, now_ms):
                self._coordinators.lead(key, now_ms)
        else:
            partition.make_follower(state)
            self._coordinators.resign(key, now_ms)
        self._events.partition_hosted(partition, state, now_ms)
        self._purgatory.check(key, now_ms)

    def _log_of(self, image: MetadataImage, key: TopicPartition) -> PartitionLog | None:
        """Return a partition's log. Return None if it is offline, or if it has to be created first."""
        known = image.topics[key.topic].topic_id
        log = self._logs.get(key)
        if log is not None and log.topic_id is not None and log.topic_id != known:
            # While this folder was offline, its topic was deleted and another topic of the same name was created.
            for directory in self._logs.directories:
                if key in directory.logs:
                    _log.warning("%s has another topic id: its folder is renamed %s", key, directory.mark_stray(key))
            log = None
        if log is None and self._may_be_offline(key):
            return None
        try:
            if log is None:
                log = self._promoted(image, key)
            if log is None:
                state = image.topics[key.topic].partitions[key.partition]
                epoch = state.leader_epoch if state.leader == self._broker_id else NO_LEADER_EPOCH
                self._new.add(NewLog(key, self._config.topic_config(image, key.topic), known, epoch))
                return None
            log.assign_topic_id(known)
        except KafkaError as error:
            _log.error("%s stays offline: %s", key, error)
            return None
        except OSError as error:
            assert log is not None
            self._logs.on_failure(self._logs.directory_of(log), error)
            return None
        return log

    def _log_created(self, new: NewLog, now_ms: int) -> None:
        """Host a partition whose log was created. Delete the log if the metadata has changed meanwhile."""
        key, image = new.partition, self._image
        topic, state = image.topics.get(key.topic), image.partition(key)
        is_here = topic is not None and state is not None and self._broker_id in state.replicas
        if not is_here or (topic is not None and topic.topic_id != new.topic_id):
            self._delete_logs([key], now_ms)
        if topic is not None and state is not None and is_here:
            log = self._logs.get(key)
            if log is not None:
                log.update_config(self._config.topic_config(image, key.topic))
            self._host(image, key, topic.id, state, now_ms)

    def _promoted(self, image: MetadataImage, key: TopicPartition) -> PartitionLog | None:
        """Return the copy of an unfinished move, if the metadata already has its directory and the old log is lost."""
        topic = image.topics[key.topic]
        place = topic.partitions[key.partition].directory_of(self._broker_id)
        for directory in self._logs.online:
            copy = directory.futures.get(key)
            if copy is not None and directory.id == place and copy.topic_id == topic.topic_id:
                _log.warning("%s: the log is replaced by %s, its copy of an unfinished move", key, copy.directory)
                try:
                    return directory.promote(key)
                except OSError as error:
                    self._logs.on_failure(directory, error)
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory.path} has failed") from error
        return None

    def _may_be_offline(self, key: TopicPartition) -> bool:
        """Return True if the log could not be opened, or may be in a directory that is offline since the start."""
        has_all = len(self._logs.online) == len(self._config.log_dirs)
        return self._logs.is_offline(key) or (self._is_starting and not has_all)

    def _delete(self, keys: Sequence[TopicPartition], now_ms: int) -> None:
        for key in keys:
            self._events.partition_deleted(key, now_ms)
            self._partitions.remove(key)
            self._coordinators.resign(key, now_ms)
        self._delete_logs(keys, now_ms)
        for key in keys:
            self._purgatory.check(key, now_ms)

    def _delete_logs(self, keys: Sequence[TopicPartition], now_ms: int) -> None:
        for directory in self._logs.directories:
            here = [key for key in keys if key in directory.logs]
            if here:
                directory.delete_all(here, now_ms)

    def _reconfigure(self, change: Change) -> None:
        delta, image = change
        if not delta.configs:
            return
        changed: set[ConfigResource] = set(delta.configs)
        if ALL_BROKERS in changed or broker_resource(self._broker_id) in changed:
            self._events.settings_changed(image)
        for resource in changed:
            if resource.type == ResourceType.CLIENT_METRICS:
                self._events.client_metrics_changed(resource.name, image.config(resource))
        topics = {resource.name for resource in changed if resource.type == ResourceType.TOPIC}
        if topics:
            self._events.topic_settings_changed(image, topics)


def _log_topics(change: Change) -> None:
    delta, image = change
    for topic in delta.topics.deleted.values():
        _log.info("topic deleted", extra=fields(topic=topic.name, topic_id=topic.topic_id))
    for name in delta.topics.created:
        created = image.topics[name]
        _log.info(
            "topic created",
            extra=fields(topic=name, topic_id=created.topic_id, partitions=len(created.partitions)),
        )
