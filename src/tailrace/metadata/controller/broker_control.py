"""BrokerControl: the brokers of a cluster, as their controller sees them.

    register ──► heartbeat … heartbeat ──► (controlled shutdown) ──► no heartbeat for a session: fenced

Some decisions need no request. Silent brokers are fenced. Leaderships move back to preferred replicas. Unclean leaders
are elected where that is allowed. If nothing else was written for metadata.max.idle.interval.ms, a NoOpRecord is
written, so that observers see time pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from tailrace.metadata.controller.broker_sessions import BrokerSessions
from tailrace.metadata.controller.control_state import ControlState
from tailrace.metadata.controller.partition_sweep import CHANGED, PartitionSweep
from tailrace.metadata.decisions.brokers.broker_heartbeat import BrokerState, Progress, plan_heartbeat
from tailrace.metadata.decisions.brokers.broker_registration import (
    Swept,
    check_epoch,
    check_registration,
    end_previous_run,
    partitions_of,
    plan_fence,
    plan_register,
)
from tailrace.metadata.decisions.brokers.producer_ids import plan_producer_ids
from tailrace.metadata.decisions.replicas.isr_changes import plan_alter_partition
from tailrace.metadata.decisions.replicas.leader_balance import plan_balance, plan_unclean_elections
from tailrace.metadata.decisions.replicas.reassignment import plan_assign_directories
from tailrace.metadata.image.features import VersionRange
from tailrace.metadata.image.image import TopicImage
from tailrace.metadata.image.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    InconsistentMetadata,
    endpoints_by_name,
)
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, Offset
from tailrace.model.log_fields import fields
from tailrace.model.steps import Steps
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_log = logging.getLogger(__name__)
_EVERYTHING: Final = 2**63 - 1


class BrokerControlSettings(NamedTuple):
    """Kafka's keys for the brokers of a cluster."""

    session_timeout_ms: int
    idle_interval_ms: int  # 0: no NoOpRecords
    balance_interval_ms: int | None  # None: leaderships are not moved back
    unclean_interval_ms: int

    @classmethod
    def of(cls, static: Mapping[str, str]) -> BrokerControlSettings:
        def value(name: str) -> int:
            key = definition("broker")[name]
            found = key.parse(static.get(name, key.default))
            assert isinstance(found, int)
            return found

        balances = bool(value("auto.leader.rebalance.enable"))
        return cls(
            session_timeout_ms=value("broker.session.timeout.ms"),
            idle_interval_ms=value("metadata.max.idle.interval.ms"),
            balance_interval_ms=1_000 * value("leader.imbalance.check.interval.seconds") if balances else None,
            unclean_interval_ms=value("unclean.leader.election.interval.ms"),
        )


class Commit(Protocol):
    def __call__(self, records: Sequence[Message], now_ms: int, *, atomic: bool = True, flush: bool = True) -> None: ...


class BrokerControl:
    def __init__(
        self,
        log: MetadataLog,
        state: Callable[[], ControlState],
        commit: Commit,
        settings: BrokerControlSettings,
    ) -> None:
        """`state()` returns the input of a decision; `commit` writes records and carries out the change."""
        self._log = log
        self._state = state
        self._commit = commit
        self._settings = settings
        self._node_id = log.identity.node_id
        self._sessions = BrokerSessions(settings.session_timeout_ms)
        self._sweep = PartitionSweep(state, partial(commit, atomic=False))
        self._registered_at: dict[BrokerId, Offset] = {}
        self._has_observers = False
        self._idle_since: tuple[Offset, int] = (-1, 0)  # (end of the log, since when it has been that)
        self._balance_ms: int | None = None
        self._unclean_ms: int | None = None
        self._balanced: object = None  # the topics after the last balancing

    def begin(self, now_ms: int) -> None:
        """Start the sessions of the brokers in the metadata."""
        brokers = self._log.image.brokers.values()
        self._sessions.begin([one for one in brokers if one.id != self._node_id], now_ms)
        settings = self._settings
        if settings.balance_interval_ms is not None:
            self._balance_ms = now_ms + settings.balance_interval_ms
        self._unclean_ms = now_ms + settings.unclean_interval_ms
        if self._sweep.is_needed():
            self._sweep.start()  # the previous controller may have stopped during one

    def observed(self) -> None:
        """Note that another node follows the metadata log: from now on it gets NoOpRecords."""
        self._has_observers = True

    # Registration and heartbeats

    def register(self, request: messages.BrokerRegistrationRequest, now_ms: int) -> Steps[int]:
        """Register a broker and return its epoch. Raise KafkaError if it must not register."""
        new, previous_epoch = self._registration(request, now_ms), request.previous_broker_epoch
        swept = Swept({})
        if self._sweep.is_needed():
            partitions = partitions_of(self._state(), new, previous_epoch)
            for first in range(0, len(partitions), CHANGED):
                self._end_previous_run(new.id, previous_epoch, partitions[first : first + CHANGED], swept, now_ms)
                now_ms = yield
            new = self._registration(request, now_ms)
        plan = plan_register(
            self._state(),
            new,
            next_offset=self._log.next_offset,
            previous_epoch=previous_epoch,
            kraft_version=self._log.quorum.kraft_version,
            swept=swept,
        )
        self._commit(plan.records, now_ms, atomic=True)
        self._sessions.forget(request.broker_id)
        self._registered_at[request.broker_id] = self._log.image.offset
        _log.info("broker registered", extra=fields(broker=request.broker_id, epoch=plan.result))
        return plan.result

    def _end_previous_run(
        self,
        broker_id: BrokerId,
        previous_epoch: int,
        partitions: Sequence[tuple[TopicImage, int]],
        swept: Swept,
        now_ms: int,
    ) -> None:
        state = self._state()
        names = [(topic.id, number) for topic, number in partitions]
        found = [(state.image.topics_by_id.get(topic_id), number) for topic_id, number in names]
        present = [(topic, number) for topic, number in found if topic is not None and number in topic.partitions]
        self._commit(end_previous_run(state, broker_id, previous_epoch, present), now_ms, atomic=False, flush=False)
        for topic_id, number in names:
            swept.note(self._log.image, topic_id, number)

    def _registration(self, request: messages.BrokerRegistrationRequest, now_ms: int) -> BrokerRegistration:
        """Return a broker's registration. Raise KafkaError if the broker must not register."""
        image = self._log.image
        if request.cluster_id != image.cluster_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"broker {request.broker_id} belongs to cluster {request.cluster_id}; this is {image.cluster_id}",
            )
        known = image.brokers.get(request.broker_id)
        is_other = known is not None and known.incarnation_id != request.incarnation_id
        if request.broker_id == self._node_id and known is not None and not known.fenced and is_other:
            raise _duplicate(request.broker_id)
        if known is not None and is_other and self._sessions.is_valid(known.id, known.epoch, now_ms):
            raise _duplicate(request.broker_id)
        if request.is_migrating_zk_broker:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "brokers that use ZooKeeper cannot register")
        new = _registration(request)
        check_registration(self._state(), new, self._log.quorum.kraft_version)
        return new

    def heartbeat(self, request: messages.BrokerHeartbeatRequest, now_ms: int) -> messages.BrokerHeartbeatResponse:
        """Answer a heartbeat. Raise STALE_BROKER_EPOCH if another registration has replaced the sender's."""
        broker_id, epoch = request.broker_id, request.broker_epoch
        state = self._state()
        check_epoch(state, broker_id, epoch)
        self._sessions.contact(broker_id, epoch, now_ms)
        registered_at = self._registered_at.get(broker_id, epoch)
        progress = Progress(registered_at, self._sessions.leaving_since(broker_id), self._lowest_read(state))
        later = self._sweep.is_needed()
        plan = plan_heartbeat(state, request, progress, later=later)
        self._commit(plan.records, now_ms, atomic=True)
        if plan.records and later:
            self._sweep.start()
        then = plan.result
        # A broker whose registration has just changed counts as having read nothing until its next heartbeat.
        is_changed = any(isinstance(one, messages.BrokerRegistrationChangeRecord) for one in plan.records)
        read = -1 if is_changed else request.current_metadata_offset
        self._sessions.note_read(broker_id, read, is_fenced=then.is_fenced)
        if then is BrokerState.LEAVING:
            self._sessions.note_leaving(broker_id, self._log.image.offset)
        return messages.BrokerHeartbeatResponse(
            is_caught_up=request.current_metadata_offset >= registered_at,
            is_fenced=then.is_fenced,
            should_shut_down=then is BrokerState.MAY_STOP,
        )

    def _lowest_read(self, state: ControlState) -> Offset:
        """Return how far all active brokers have read. The broker in this process has read everything."""
        brokers = [one for one in state.image.brokers.values() if not one.fenced and one.id != self._node_id]
        return self._sessions.lowest_read(brokers, _EVERYTHING)

    def unregistered(self, broker_id: BrokerId) -> None:
        """Forget a broker whose registration was removed."""
        self._sessions.forget(broker_id)
        self._registered_at.pop(broker_id, None)

    def register_controller(self, request: messages.ControllerRegistrationRequest, now_ms: int) -> None:
        """Record the registration of another controller, such as one that observes the quorum."""
        if not self._log.image.record_versions.has_controllers:
            reason = "this metadata.version has no registrations of controllers"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
        registration = ControllerRegistration(
            id=request.controller_id,
            incarnation_id=request.incarnation_id,
            endpoints=_endpoints(request.listeners),
            features=_features(request.features),
        )
        self._commit([registration.to_record()], now_ms)

    # Requests of brokers

    def alter_partition(
        self, request: messages.AlterPartitionRequest, version: int, now_ms: int
    ) -> messages.AlterPartitionResponse:
        plan = plan_alter_partition(self._state(), request, version)
        self._commit(plan.records, now_ms, atomic=False)
        return plan.result

    def assign_directories(
        self, broker_id: BrokerId, epoch: int, assignments: Sequence[tuple[bytes, bytes, int]], now_ms: int
    ) -> list[ErrorCode]:
        """Record the log directories of a broker's replicas, as (directory, topic id, partition)."""
        state = self._state()
        check_epoch(state, broker_id, epoch)
        plan = plan_assign_directories(state, broker_id, assignments)
        self._commit(plan.records, now_ms, atomic=False)
        return plan.result

    def allocate_producer_ids(self, broker_id: BrokerId, epoch: int, now_ms: int) -> range:
        state = self._state()
        check_epoch(state, broker_id, epoch)
        plan = plan_producer_ids(state, broker_id)
        self._commit(plan.records, now_ms)
        return plan.result

    # By itself

    def tick(self, now_ms: int) -> None:
        """Fence silent brokers, and do the periodic work that is due."""
        for broker_id, epoch in self._sessions.expired(now_ms):
            self._end_session(broker_id, epoch, "its session has expired", now_ms)
        self._sweep.tick(now_ms)
        if self._unclean_ms is not None and now_ms >= self._unclean_ms:
            is_more = self._run(plan_unclean_elections, now_ms)
            self._unclean_ms = now_ms if is_more else now_ms + self._settings.unclean_interval_ms
        if self._balance_ms is not None and now_ms >= self._balance_ms:
            assert self._settings.balance_interval_ms is not None
            is_more = self._log.image.topics is not self._balanced and self._run(plan_balance, now_ms)
            self._balanced = None if is_more else self._log.image.topics
            self._balance_ms = now_ms if is_more else now_ms + self._settings.balance_interval_ms
        self._write_when_idle(now_ms)

    def broker_ended(self, broker_id: BrokerId, now_ms: int) -> None:
        """Fence a broker whose process has ended. The next one need not wait until the session expires."""
        known = self._log.image.brokers.get(broker_id)
        if known is not None:
            self._end_session(broker_id, known.epoch, "its process has ended", now_ms)

    def _end_session(self, broker_id: BrokerId, epoch: int, reason: str, now_ms: int) -> None:
        known = self._log.image.brokers.get(broker_id)
        if known is not None and known.epoch == epoch and not known.fenced:
            _log.warning("broker fenced: %s", reason, extra=fields(broker=broker_id, epoch=epoch))
            later = self._sweep.is_needed()
            self._commit(plan_fence(self._state(), broker_id, later=later).records, now_ms, atomic=False)
            if later:
                self._sweep.start()
            self._sessions.note_read(broker_id, -1, is_fenced=True)
        self._sessions.end(broker_id, epoch)

    def _run(self, plan: Callable[[ControlState], tuple[list[Message], bool]], now_ms: int) -> bool:
        records, is_more = plan(self._state())
        self._commit(records, now_ms, atomic=False)
        return is_more

    def _write_when_idle(self, now_ms: int) -> None:
        if not self._has_observers or not self._settings.idle_interval_ms:
            return
        end = self._log.next_offset
        if end != self._idle_since[0]:
            self._idle_since = end, now_ms
        elif now_ms - self._idle_since[1] >= self._settings.idle_interval_ms:
            self._commit([messages.NoOpRecord()], now_ms)
            self._idle_since = self._log.next_offset, now_ms

    def next_deadline_ms(self) -> int | None:
        due = [
            0 if self._sweep.is_running else None,
            self._sessions.next_deadline_ms(),
            self._balance_ms,
            self._unclean_ms,
        ]
        if self._has_observers and self._settings.idle_interval_ms:
            end, since_ms = self._idle_since
            due.append(since_ms + self._settings.idle_interval_ms if end == self._log.next_offset else 0)
        return min((one for one in due if one is not None), default=None)


def _duplicate(broker_id: BrokerId) -> KafkaError:
    return KafkaError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"another process is registered as broker {broker_id}, and its session has not expired",
    )


def _registration(request: messages.BrokerRegistrationRequest) -> BrokerRegistration:
    return BrokerRegistration(
        id=request.broker_id,
        epoch=-1,
        incarnation_id=request.incarnation_id,
        endpoints=_endpoints(request.listeners),
        features=_features(request.features),
        rack=request.rack,
        directories=tuple(request.log_dirs),
    )


def _endpoints(listeners: Iterable[Any]) -> dict[str, Endpoint]:
    try:
        return endpoints_by_name(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in listeners)
    except InconsistentMetadata as error:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, str(error)) from error


def _features(features: Iterable[Any]) -> dict[str, VersionRange]:
    return {one.name: VersionRange(one.min_supported_version, one.max_supported_version) for one in features}
