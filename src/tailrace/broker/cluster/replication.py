"""Replication: replicas on several brokers.

The broker fetches the partitions that it follows from their leaders. For the partitions that it leads, it proposes ISR
changes to the controller. A cluster of one node has no Replication.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.cluster.transaction_peers import peer_of
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.handling.throttling import windows_of
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.fetching.fetcher_settings import FetcherSettings
from tailrace.replication.fetching.replica_fetcher import CHANNEL
from tailrace.replication.fetching.replica_fetchers import ReplicaFetchers
from tailrace.replication.fetching.throttles import FollowerThrottle
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.isr.isr_proposals import IsrProposals
from tailrace.replication.partition import Partition
from tailrace.waiting.outbox import Outbox, Peer


class Replication:
    def __init__(
        self,
        config: BrokerConfig,
        controller: LocalController | RemoteController,
        partitions: HostedPartitions,
        outbox: Outbox,
        appended: Callable[[TopicPartition, int], None],
        now_ms: int,
    ) -> None:
        """`appended(partition, now_ms)` is called when the high watermark of a partition may have moved."""
        self._config = config
        self._controller = controller
        self._partitions = partitions
        self._image: MetadataImage | None = None  # the image whose settings are applied
        self._is_started = False
        listener = config.inter_broker_listener.name

        def locate(broker_id: BrokerId) -> Peer | None:
            return peer_of(controller.image, broker_id, listener, CHANNEL)

        self.throttle = FollowerThrottle(
            config.node_id,
            ReplicationQuota(
                windows_of(config, "replication.quota.window"),
                lambda: config.current_integer("follower.replication.throttled.rate", controller.image),
            ),
        )
        self.fetchers = ReplicaFetchers(
            FetcherSettings(
                broker_id=config.node_id,
                broker_epoch=lambda: controller.broker_epoch,
                wait_ms_max=config.integer("replica.fetch.wait.max.ms"),
                bytes_min=config.integer("replica.fetch.min.bytes"),
                partition_bytes_max=config.integer("replica.fetch.max.bytes"),
                response_bytes_max=config.integer("replica.fetch.response.max.bytes"),
                backoff_ms=config.integer("replica.fetch.backoff.ms"),
                timeout_ms=config.integer("replica.socket.timeout.ms"),
                throttle=self.throttle,
            ),
            outbox,
            partitions,
            locate,
            appended,
            count=config.current_integer("num.replica.fetchers", controller.image),
        )
        self.proposals = IsrProposals(
            controller,
            partitions,
            appended,
            lag_ms_max=config.integer("replica.lag.time.max.ms"),
            now_ms=now_ms,
        )

    def hosted(self, partition: Partition, _: PartitionRegistration, __: int) -> None:
        """Follow the leader of a partition that new metadata has made a follower."""
        if self._is_started:
            self.fetchers.follow(partition)

    def start(self) -> None:
        """Begin to fetch from leaders. Called when the broker is unfenced."""
        self._is_started = True
        for partition in self._partitions:
            self.fetchers.follow(partition)

    def tick(self, now_ms: int) -> None:
        image = self._controller.image
        if image is not self._image:
            self._image = image
            self.fetchers.resize(self._config.current_integer("num.replica.fetchers", image))
        self.fetchers.tick(now_ms)
        self.proposals.tick(now_ms)

    def next_deadline_ms(self) -> int:
        other_ms = self.fetchers.next_deadline_ms()
        due_ms = self.proposals.next_deadline_ms()
        return due_ms if other_ms is None else min(due_ms, other_ms)
