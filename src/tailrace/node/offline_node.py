"""OfflineNode: a data directory that no broker uses, opened by this process.

The directory is opened as a broker opens it, with its `.lock`, its controller and its logs, but without a listener.
Topics can be created and finished segments adopted. A clean stop leaves a directory that Tailrace or Apache Kafka can
use. A new directory is formatted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.services import Services
from tailrace.broker.startup.open_broker import REFUSALS, open_broker
from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.log.disk.files import DiskFiles
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.recovery.adoption import Adopted, adopt
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.storage_format import is_formatted, read_identity
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest


class NodeRefused(Exception):
    """A directory that cannot be opened, or a change that its controller refuses. The message is one sentence."""


class LogEndState(NamedTuple):
    """The state of a log that is needed to build segments for it."""

    end_offset: Offset
    leader_epoch: LeaderEpoch
    config: TopicConfig


class OfflineNode:
    def __init__(self, path: str) -> None:
        self._path = path
        self._files = DiskFiles()
        self._broker: Broker | None = None

    def __enter__(self) -> Self:
        settings = {"log.dirs": self._path, "listeners": "PLAINTEXT://127.0.0.1:9092"}
        try:
            identity = read_identity(self._files, self._path) if is_formatted(self._files, self._path) else None
            if identity is not None:
                settings["node.id"] = str(identity.node_id)
            config = BrokerConfig(settings)
            if identity is not None:
                self._check_alone(config, identity)
            self._broker = open_broker(
                self._files,
                config,
                now_ms=_now_ms(),
                new_id=lambda: uuid4().bytes,
                next_int=random.randrange,
            )
        except DirectoryInUse as error:
            raise NodeRefused(
                f"{error}; if it is a Tailrace broker, give its address with --bootstrap: it adopts the segments"
            ) from error
        except (*REFUSALS, OSError) as error:
            raise NodeRefused(f"{self._path} cannot be opened: {error}") from error
        return self

    def _check_alone(self, config: BrokerConfig, identity: DirectoryIdentity) -> None:
        """Refuse a directory of a cluster, and one of several directories: the other partitions would look lost."""
        log = MetadataLog(
            OverlayFiles(self._files),  # reads only; writes stay in memory
            self._path,
            identity,
            config.metadata_log,
            controller_endpoints=config.controller_endpoints(None, "localhost"),
            now_ms=_now_ms(),
        )
        brokers = log.image.brokers
        log.abandon()
        if set(brokers) - {identity.node_id}:
            raise NodeRefused(f"{self._path} belongs to a cluster of {len(brokers)} brokers")
        known = brokers.get(identity.node_id)
        if known is not None and len(known.directories or ()) > 1:
            raise NodeRefused(f"{self._path} is one of {len(known.directories or ())} log directories of its broker")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._broker is not None:
            self._broker.close(_now_ms())
            self._broker = None

    @property
    def broker(self) -> Broker:
        assert self._broker is not None, "use the node in a with statement"
        return self._broker

    @property
    def _services(self) -> Services:
        return self.broker.services

    @property
    def _controller(self) -> LocalController:
        controller = self._services.local_controller
        assert controller is not None, "an offline node has a local controller"
        return controller

    def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 if it does not exist."""
        found = self._services.controller.image.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        configs = [CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=partitions, replication_factor=1, configs=configs
                )
            ]
        )
        result = self._controller.create_topics(request, _now_ms()).topics[0]
        if result.error_code:
            reason = result.error_message or ErrorCode(result.error_code).name
            raise NodeRefused(f"topic {name} cannot be created: {reason}")

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])
        self._controller.delete_topics(request, _now_ms())

    def log_end_state(self, partition: TopicPartition) -> LogEndState:
        """Return the end offset, leader epoch and config of a partition's log."""
        hosted = self._services.partitions.get(partition)
        if hosted is None:
            raise NodeRefused(f"{partition} cannot be opened in {self._path}")
        state = self._services.controller.image.topics[partition.topic].partitions[partition.partition]
        return LogEndState(hosted.log.log_end_offset, state.leader_epoch, hosted.log.config)

    def adopt(self, partition: TopicPartition, folder: str, leader_epoch: LeaderEpoch) -> Adopted:
        """Append finished segments to a partition's log. Raise NotAdoptable if they do not fit."""
        hosted = self._services.partitions.get(partition)
        assert hosted is not None, f"{partition} is not hosted"
        try:
            found = adopt(self._files, hosted.log, folder, leader_epoch, _now_ms())
        except KafkaError as error:
            raise NodeRefused(f"{partition}: {error}") from error
        hosted.log.advance_high_watermark(found.end_offset)
        return found


def _now_ms() -> int:
    return int(time.time() * 1000)
