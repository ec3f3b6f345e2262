"""Shares: the delivery of records to share groups, put together: sessions, share partitions, settings, kept states."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.group_limits import clamp_group_config
from tailrace.broker.coordination.partition_ends import PartitionEnds
from tailrace.broker.shares.share_persister import SharePersister
from tailrace.broker.shares.share_states import ShareStates
from tailrace.broker.storage.cleaning import Step, Work
from tailrace.log.watermarks import Isolation
from tailrace.metadata.image.features import SHARE_VERSION
from tailrace.metadata.image.image import ConfigResource, MetadataImage, ResourceType
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.shares.delivery_settings import ShareSettings
from tailrace.shares.share_partition import PersistedState, SharePartition, StateBatch
from tailrace.shares.share_partitions import Done, ShareKey, SharePartitions
from tailrace.shares.share_sessions import SessionKey, ShareSession, ShareSessions
from tailrace.shares.state.share_state import ShareState
from tailrace.shares.state.share_state import StateBatch as KeptBatch
from tailrace.shares.state.share_state_coordinator import SharePartitionKey, ShareWrite
from tailrace.waiting.outbox import Outbox
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)


class Shares:
    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        partitions: HostedPartitions,
        purgatory: Purgatory,
        states: ShareStates,
        outbox: Outbox,
        peers: ShareStatePeers | None,
        submit: Callable[[Work], None],
    ) -> None:
        self._config = config
        self._image = image
        self._defaults = share_settings(config)
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
            KeptStates(self.persister),
            purgatory,
            self.settings,
            lambda run, apply, failed: submit(Step(run, apply, failed, is_prompt=True)),
        )

    @property
    def is_enabled(self) -> bool:
        return self._image().features.get(SHARE_VERSION, 0) >= 1

    def settings(self, group_id: str) -> ShareSettings:
        """The broker's, with what is set for the group itself."""
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
        """A member ends its session, or is gone: what it has acquired is available again."""
        session = self.sessions.remove(key)
        if session is None:
            _log.info("share session of %s: there is none to end", key)
            return
        self._release(session, now_ms)

    def _release(self, session: ShareSession, now_ms: int) -> None:
        group_id, member_id = session.key

        def done(error: KafkaError | None, now_ms: int) -> None:
            if error is not None:
                _log.info("share session of %s: %s", session.key, error)

        for topic_id, partition in session.partitions:
            self.partitions.release(ShareKey(group_id, topic_id, partition), member_id, done, now_ms)

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        session = self.sessions.connection_closed(connection_id)
        if session is None:
            return
        if self.sessions.is_open(session):
            self.release_session(session.key, now_ms)
        if not self.sessions.has_members(session.key.group_id):
            self.partitions.forget_group(session.key.group_id)


def share_settings(config: BrokerConfig) -> ShareSettings:
    return ShareSettings(
        record_lock_duration_ms=config.integer("group.share.record.lock.duration.ms"),
        delivery_count_limit=config.integer("group.share.delivery.count.limit"),
        partition_max_record_locks=config.integer("group.share.partition.max.record.locks"),
    )


class KeptStates:
    """The persister as share partitions know it."""

    def __init__(self, persister: SharePersister) -> None:
        self._persister = persister

    def read(
        self,
        key: ShareKey,
        leader_epoch: int,
        answer: Callable[[PersistedState, int], None],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
    ) -> None:
        def read(state: ShareState, now_ms: int) -> None:
            batches = [StateBatch(*batch) for batch in state.batches]
            answer(PersistedState(state.state_epoch, state.start_offset, batches), now_ms)

        self._persister.read(SharePartitionKey(*key), leader_epoch, read, refuse, now_ms)

    def write(
        self, key: ShareKey, partition: SharePartition, batches: Sequence[StateBatch], done: Done, now_ms: int
    ) -> None:
        write = ShareWrite(
            partition.state_epoch,
            partition.leader_epoch,
            partition.start_offset,
            partition.delivery_complete_count,
            tuple(KeptBatch(*batch) for batch in batches),
        )

        def written(_: ErrorCode, now_ms: int) -> None:
            done(None, now_ms)

        self._persister.write(SharePartitionKey(*key), write, written, done, now_ms)
