"""Transactions: the transaction coordinator of a broker, with its log, its settings and its marker writer."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinator_topics import TRANSACTION_STATE
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.marker_writer import Answer, Marker, MarkerWriter
from tailrace.broker.coordination.partition_writer import PartitionWriter
from tailrace.coordinator.runtime import CoordinatorRuntime
from tailrace.coordinator.transactions.markers import TransactionEnd
from tailrace.coordinator.transactions.producer_ids import ProducerIds
from tailrace.coordinator.transactions.timeouts import TimeoutConfig
from tailrace.coordinator.transactions.transaction_coordinator import (
    ClusterView,
    MarkerRoutes,
    TransactionConfig,
    TransactionCoordinator,
)
from tailrace.coordinator.transactions.transaction_shard import TransactionShard
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.features import TRANSACTION_VERSION
from tailrace.model.ids import TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory


class Transactions:
    """The transaction coordinator, the producer ids and the marker writer of a broker."""

    def __init__(
        self,
        config: BrokerConfig,
        controller: Controller,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        coordinators: Coordinators,
        appended: Callable[[TopicPartition, int], None],
        peers: TransactionPeers | None,
        now_ms: int,
    ) -> None:
        log = PartitionWriter(partitions, appended)
        write_timeout_ms = config.integer("request.timeout.ms")
        self.producer_ids = ProducerIds(controller.allocate_producer_ids)
        self.marker_writer = MarkerWriter(log, coordinators, purgatory, write_timeout_ms=write_timeout_ms)

        def make_runtime(
            make_shard: Callable[[int], TransactionShard], reload: Callable[[int, int], None]
        ) -> CoordinatorRuntime[TransactionShard]:
            return CoordinatorRuntime(
                TRANSACTION_STATE,
                log,
                purgatory,
                lambda index, _: make_shard(index),
                write_timeout_ms=write_timeout_ms,
                reload=reload,
            )

        def log_partitions() -> int:
            known = controller.image.topics.get(TRANSACTION_STATE)
            return config.integer("transaction.state.log.num.partitions") if known is None else len(known.partitions)

        def leader_of(key: TopicPartition) -> int | None:
            state = controller.image.partition(key)
            return None if state is None else state.leader

        routes = MarkerRoutes(self._write_marker)
        if peers is not None:
            routes = routes._replace(send=peers.send_markers)
        self.coordinator = TransactionCoordinator(
            transaction_config(config),
            make_runtime,
            broker_id=config.node_id,
            cluster=ClusterView(
                log_partitions,
                log_epoch=lambda index: partitions.find(TopicPartition(TRANSACTION_STATE, index)).leader_epoch,
                server_version=lambda: controller.image.features.get(TRANSACTION_VERSION, 0),
                leader_of=leader_of,
            ),
            new_producer_id=self.producer_ids.next,
            marker_routes=routes,
            now_ms=now_ms,
        )
        coordinators.add(self.coordinator)

    def _write_marker(self, end: TransactionEnd, key: TopicPartition, answer: Answer, now_ms: int) -> None:
        marker = Marker(
            end.producer_id, end.producer_epoch, end.coordinator_epoch, end.is_commit, end.transaction_version
        )
        self.marker_writer.write(key, marker, answer, now_ms)


def transaction_config(config: BrokerConfig) -> TransactionConfig:
    return TransactionConfig(
        max_timeout_ms=config.integer("transaction.max.timeout.ms"),
        timeouts=TimeoutConfig(
            expiration_ms=config.integer("transactional.id.expiration.ms"),
            abort_interval_ms=config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            expire_interval_ms=config.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
        ),
    )
