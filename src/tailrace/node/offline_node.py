"""OfflineNode: a data directory that no broker serves, in the hands of this process for a while.

It is opened as a broker opens it, with its `.lock`, its controller and its logs, but nobody listens: topics are made,
finished segments are taken in, and a clean stop leaves a directory that Tailrace or Apache Kafka goes on with. A
directory that is new is formatted.
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
from tailrace.log.directories.log_directory import DirectoryInUse
from tailrace.log.disk.checkpoints import DirectoryIdentity
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
    """A directory that cannot be opened, or a change that its controller refuses; one sentence."""


class LogStanding(NamedTuple):
    """What one has to know to build segments that a log can take in."""

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
                f"{error}; if that is a Tailrace broker, bootstrap says where it listens, and it takes the load in"
            ) from error
        except (*REFUSALS, OSError) as error:
            raise NodeRefused(f"{self._path} cannot be opened: {error}") from error
        return self

    def _check_alone(self, config: BrokerConfig, identity: DirectoryIdentity) -> None:
        """One directory of several would look like a node that has lost the others' partitions."""
        log = MetadataLog(
            OverlayFiles(self._files),  # to look, and leave it as it is
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
        assert self._broker is not None, "it is open while it is entered"
        return self._broker

    @property
    def _services(self) -> Services:
        return self.broker.services

    @property
    def _controller(self) -> LocalController:
        controller = self._services.local_controller
        assert controller is not None, "it is a node that is alone"
        return controller

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has; 0 if there is no such topic."""
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
            raise NodeRefused(f"topic {name} cannot be made: {reason}")

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])
        self._controller.delete_topics(request, _now_ms())

    def standing(self, partition: TopicPartition) -> LogStanding:
        """Where a partition's log ends, and under which leader and settings it goes on."""
        hosted = self._services.partitions.get(partition)
        if hosted is None:
            raise NodeRefused(f"{partition} cannot be opened in {self._path}")
        state = self._services.controller.image.topics[partition.topic].partitions[partition.partition]
        return LogStanding(hosted.log.log_end_offset, state.leader_epoch, hosted.log.config)

    def adopt(self, partition: TopicPartition, folder: str, leader_epoch: LeaderEpoch) -> Adopted:
        """Take finished segments in at the end of a partition's log; NotAdoptable if they do not fit."""
        hosted = self._services.partitions.get(partition)
        assert hosted is not None, f"{partition} is not here"
        try:
            found = adopt(self._files, hosted.log, folder, leader_epoch, _now_ms())
        except KafkaError as error:
            raise NodeRefused(f"{partition}: {error}") from error
        hosted.log.advance_high_watermark(found.end_offset)
        return found


def _now_ms() -> int:
    return int(time.time() * 1000)
