"""A node in memory that is the controller of other brokers, and the brokers that a test plays.

controller = PlayedController()
broker = controller.broker(1)
broker.register()
broker.heartbeat()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.log.disk.files import Files
from tailrace.metadata.image.features import SUPPORTED
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.storage.storage_format import METADATA_TOPIC_ID
from tailrace.protocol import messages as m
from tests.support.memory_node import NOW_MS, Client, start

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "3000",
    "listeners": "CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
}


class PlayedController:
    def __init__(
        self, static: Mapping[str, str] | None = None, files: Files | None = None, now_ms: int = NOW_MS, **more: Any
    ) -> None:
        self.node = start(files, {**CONTROLLER, **(static or {})}, now_ms=now_ms, **more)
        self.now_ms = now_ms
        self._connections = 0

    @property
    def image(self) -> MetadataImage:
        return self.node.services.controller.image

    def client(self) -> Client:
        """Return a new connection to the controller listener."""
        self._connections += 1
        client = Client(self.node, connection_id=self._connections)
        client.context.listener = "CONTROLLER"
        client.now_ms = self.now_ms
        return client

    def ask(self, request: Any, version: int) -> Any:
        return self.client().ask(request, version)

    def broker(self, broker_id: int) -> PlayedBroker:
        return PlayedBroker(self, broker_id)

    def brokers(self, count: int) -> list[PlayedBroker]:
        """Return brokers that are registered and unfenced."""
        found = [self.broker(number) for number in range(1, count + 1)]
        for one in found:
            one.register()
            one.heartbeat()
        return found

    def create_topic(self, name: str, assignments: list[list[int]], **config: str) -> None:
        kind = m.CreateTopicsRequest
        topic = kind.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=number, broker_ids=replicas)
                for number, replicas in enumerate(assignments)
            ],
            configs=[kind.CreatableTopicConfig(name=key.replace("_", "."), value=text) for key, text in config.items()],
        )
        (result,) = self.ask(kind(topics=[topic], timeout_ms=1_000), 7).topics
        assert result.error_code == 0, result

    def tick(self, ms: int) -> None:
        """Let time pass, as a loop does: in steps."""
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            self.now_ms = min(self.now_ms + 200, end_ms)
            self.node.tick(self.now_ms)


class PlayedBroker:
    def __init__(self, controller: PlayedController, broker_id: int) -> None:
        self.controller = controller
        self.id = broker_id
        self.incarnation_id = bytes([broker_id]) * 16
        self.directories = [bytes([200, broker_id]) * 8]
        self.epoch = -1

    def registration(self, **fields: Any) -> m.BrokerRegistrationRequest:
        kind = m.BrokerRegistrationRequest
        values = {
            "broker_id": self.id,
            "cluster_id": self.controller.image.cluster_id,
            "incarnation_id": self.incarnation_id,
            "listeners": [kind.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092 + self.id)],
            "features": [
                kind.Feature(name=name, min_supported_version=levels.low, max_supported_version=levels.high)
                for name, levels in SUPPORTED.items()
            ],
            "log_dirs": self.directories,
        }
        return kind(**{**values, **fields})

    def register(self, **fields: Any) -> int:
        """Register, and return the error code."""
        response = self.controller.ask(self.registration(**fields), 4)
        if not response.error_code:
            self.epoch = response.broker_epoch
        return int(response.error_code)

    def heartbeat(self, **fields: Any) -> m.BrokerHeartbeatResponse:
        """Send a heartbeat of a broker that has read all metadata."""
        values = {
            "broker_id": self.id,
            "broker_epoch": self.epoch,
            "current_metadata_offset": self.controller.image.offset,
        }
        response: m.BrokerHeartbeatResponse = self.controller.ask(m.BrokerHeartbeatRequest(**{**values, **fields}), 2)
        return response

    def propose(self, topic: str, isr: list[tuple[int, int]], **fields: Any) -> Any:
        """Propose an ISR of partition 0, as (broker, epoch), and return the partition of the response."""
        known = self.controller.image.topics[topic]
        kind = m.AlterPartitionRequest
        values = {
            "partition_index": 0,
            "leader_epoch": known.partitions[0].leader_epoch,
            "partition_epoch": known.partitions[0].partition_epoch,
            "new_isr_with_epochs": [kind.BrokerState(broker_id=one, broker_epoch=epoch) for one, epoch in isr],
        }
        request = kind(
            broker_id=self.id,
            broker_epoch=self.epoch,
            topics=[kind.TopicData(topic_id=known.id, partitions=[kind.PartitionData(**{**values, **fields})])],
        )
        response = self.controller.ask(request, 3)
        return response if response.error_code else response.topics[0].partitions[0]


def metadata_fetch(offset: int, last_epoch: int, epoch: int, *, node_id: int = 9, wait_ms: int = 0) -> m.FetchRequest:
    """Return a fetch of the metadata log."""
    kind = m.FetchRequest
    partition = kind.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        replica_directory_id=bytes([9]) * 16,
    )
    return kind(
        replica_state=kind.ReplicaState(replica_id=node_id),
        max_wait_ms=wait_ms,
        max_bytes=1_000_000,
        topics=[kind.FetchTopic(topic_id=METADATA_TOPIC_ID.value.bytes, partitions=[partition])],
    )
