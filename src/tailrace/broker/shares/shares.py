"""Shares: the sessions, share partitions, settings and persisted state of share groups on this broker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.group_limits import clamp_group_config
from tailrace.broker.coordination.partition_ends import PartitionEnds
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.share_persister import SharePersister
from tailrace.log.watermarks import Isolation
from tailrace.metadata.image.features import SHARE_VERSION
from tailrace.metadata.image.image import ConfigResource, MetadataImage, ResourceType
from tailrace.model.errors import KafkaError
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.share_partitions import RemoteRead, SharePartitions
from tailrace.shares.share_sessions import SessionKey, ShareSession, ShareSessions
from tailrace.shares.state.persisted_state import SharePartitionKey
from tailrace.waiting.chore import Chore, FunctionChore
from tailrace.waiting.outbox import Outbox
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)


class ShareWork(NamedTuple):
    """Work of share fetches that is done on a worker thread."""

    submit: Callable[[Chore], None]
    remote_read: RemoteRead  # reads from the remote store


class Shares:
    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        partitions: HostedPartitions,
        purgatory: Purgatory,
        states: ShareCoordinator,
        outbox: Outbox,
        peers: ShareStatePeers | None,
        work: ShareWork,
    ) -> None:
        self._config = config
        self._image = image
        self._defaults = delivery_settings(config)
        self.sessions = ShareSessions(config.integer("group.share.max.share.sessions"))
        self.persister = SharePersister(states, peers)
        self.ends = PartitionEnds(
            partitions,
            outbox,
            image,
            listener=config.inter_broker_listener.name,
            node_id=config.node_id,
            timeout_ms=config.integer("request.timeout.ms"),
        )
        self.partitions = SharePartitions(
            partitions,
            self.persister,
            purgatory,
            self.settings,
            lambda run, apply, failed: work.submit(FunctionChore(run, apply, failed, is_prompt=True)),
            work.remote_read,
        )

    @property
    def is_enabled(self) -> bool:
        return self._image().features.get(SHARE_VERSION, 0) >= 1

    def settings(self, group_id: str) -> DeliverySettings:
        """Return the settings of a group: its own, and the broker's for the rest."""
        own = clamp_group_config(self._config, self._image().config(ConfigResource(ResourceType.GROUP, group_id)))
        if not own:
            return self._defaults
        base = self._defaults
        committed = own.get("share.isolation.level", "").lower() == "read_committed"
        return replace(
            base,
            record_lock_duration_ms=int(own.get("share.record.lock.duration.ms", base.record_lock_duration_ms)),
            delivery_count_limit=int(own.get("share.delivery.count.limit", base.delivery_count_limit)),
            partition_max_record_locks=int(
                own.get("share.partition.max.record.locks", base.partition_max_record_locks)
            ),
            auto_offset_reset=own.get("share.auto.offset.reset", base.auto_offset_reset),
            isolation=Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED,
            renew_acknowledge_enable=own.get("share.renew.acknowledge.enable", "true").lower() == "true",
        )

    # Time

    def tick(self, now_ms: int) -> None:
        self.persister.tick(now_ms)
        self.partitions.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadline_ms, other_ms = self.partitions.next_deadline_ms(), self.persister.next_deadline_ms()
        if deadline_ms is None or other_ms is None:
            return other_ms if deadline_ms is None else deadline_ms
        return min(deadline_ms, other_ms)

    # The end of sessions

    def release_session(self, key: SessionKey, now_ms: int) -> None:
        """End the session of a member. The records that it has acquired become available again."""
        session = self.sessions.remove(key)
        if session is None:
            _log.info("share session %s does not exist, so it cannot be ended", key)
            return
        self._release(session, now_ms)

    def _release(self, session: ShareSession, now_ms: int) -> None:
        group_id, member_id = session.key

        def done(error: KafkaError | None, now_ms: int) -> None:
            if error is not None:
                _log.info("records of the share session %s could not be released: %s", session.key, error)

        for topic_id, partition in session.partitions:
            self.partitions.release(SharePartitionKey(group_id, topic_id, partition), member_id, done, now_ms)

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        session = self.sessions.connection_closed(connection_id)
        if session is None:
            return
        if self.sessions.is_open(session):
            self.release_session(session.key, now_ms)
        if not self.sessions.has_members(session.key.group_id):
            self.partitions.forget_group(session.key.group_id)


def delivery_settings(config: BrokerConfig) -> DeliverySettings:
    return DeliverySettings(
        record_lock_duration_ms=config.integer("group.share.record.lock.duration.ms"),
        delivery_count_limit=config.integer("group.share.delivery.count.limit"),
        partition_max_record_locks=config.integer("group.share.partition.max.record.locks"),
    )
