"""OwnBroker: the broker in the same process as a LocalController. It sends no requests: its reports are plain calls.

    start ──► (reports …) ──► prepare_stop ──► stop

The broker may make a report while it carries out a change of the metadata. Such a report is decided at the next tick,
because no change may be written during another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tailrace.metadata.controller.broker_control import BrokerControl, Commit
from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.brokers.broker_registration import (
    plan_directories,
    plan_fence,
    plan_leave,
    plan_register,
    plan_unfence,
)
from tailrace.metadata.decisions.replicas.reassignment import plan_assign_directories
from tailrace.metadata.image.registrations import BrokerRegistration
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages
from tailrace.waiting.outbox import Answered, Failed

T = TypeVar("T")
LINGER_MS = 100  # time for other brokers and clients to learn that this broker leads nothing any more
_VERSION = 3  # of AlterPartition, with the epochs of brokers

Assignment = tuple[bytes, bytes, int]  # (directory, topic id, partition)


class OwnBroker:
    def __init__(
        self, log: MetadataLog, brokers: BrokerControl, state: Callable[[], ControlState], commit: Commit
    ) -> None:
        self._log = log
        self._brokers = brokers
        self._state = state
        self._commit = commit
        self._node_id = log.identity.node_id
        self.registration: BrokerRegistration | None = None  # None: this node has no broker
        self._cordoned: tuple[bytes, ...] = ()
        self._is_cordoning = False  # True if the metadata has other cordoned directories than `_cordoned`
        self._proposals: list[tuple[list[messages.AlterPartitionRequest.TopicData], Answered]] = []
        self._assignments: list[Assignment] = []
        self._ready: tuple[int, Callable[[], None]] | None = None  # (when, what to call): the broker may stop

    # Lifecycle

    def register(self, registration: BrokerRegistration, previous_epoch: int, now_ms: int) -> int:
        """Register and unfence the broker; return its epoch."""
        self.registration = registration
        registered = plan_register(
            self._state(), registration, next_offset=self._log.next_offset, previous_epoch=previous_epoch
        )
        self._commit(registered.records, now_ms, atomic=False, flush=False)
        records = plan_unfence(self._state(), self._node_id).records
        if self._log.image.record_versions.has_cordoned_directories:
            records += plan_directories(self._state(), self._node_id, cordoned=self._cordoned).records
        self._commit(records, now_ms, atomic=False)
        return registered.result

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """Let other brokers lead this broker's partitions, and then call `ready`. Alone, call it at once."""
        image = self._log.image
        if self.registration is None or not any(one.id != self._node_id for one in image.unfenced_brokers()):
            ready()
            return
        self._commit(plan_leave(self._state(), self._node_id).records, now_ms, atomic=False)
        self._ready = now_ms + LINGER_MS, ready

    def stop(self, now_ms: int) -> int:
        """Mark the broker as shutting down, then fence it. Return the epoch to store for the next start, or -1."""
        if self.registration is None:
            return -1
        self._commit(plan_leave(self._state(), self._node_id).records, now_ms, atomic=False, flush=False)
        self._commit(plan_fence(self._state(), self._node_id).records, now_ms, atomic=False)
        return self._log.image.brokers[self._node_id].epoch

    def tick(self, now_ms: int) -> None:
        if self._is_cordoning:
            self._is_cordoning = False
            self._commit(plan_directories(self._state(), self._node_id, cordoned=self._cordoned).records, now_ms)
        if self._assignments:
            assignments, self._assignments = self._assignments, []
            self.assign_directories(assignments, now_ms)
        proposals, self._proposals = self._proposals, []
        for topics, answered in proposals:
            answered(self._decide(topics, now_ms), now_ms)
        if self._ready is not None and now_ms >= self._ready[0]:
            ready, self._ready = self._ready[1], None
            ready()

    def next_deadline_ms(self) -> int | None:
        if self._is_cordoning or self._assignments or self._proposals:
            return 0
        return None if self._ready is None else self._ready[0]

    # Reports

    def alter_partition(
        self, topics: Sequence[messages.AlterPartitionRequest.TopicData], answered: Answered, failed: Failed
    ) -> None:
        """Decide at the next tick on ISRs of partitions led here. `failed` is never called."""
        self._proposals.append((list(topics), answered))

    def _decide(
        self, topics: list[messages.AlterPartitionRequest.TopicData], now_ms: int
    ) -> messages.AlterPartitionResponse:
        broker = self._log.image.brokers.get(self._node_id)
        epoch = -1 if broker is None else broker.epoch
        request = messages.AlterPartitionRequest(broker_id=self._node_id, broker_epoch=epoch, topics=topics)
        try:
            return self._brokers.alter_partition(request, _VERSION, now_ms)
        except KafkaError as error:
            return messages.AlterPartitionResponse(error_code=error.code)

    def assign_directories(self, assignments: Sequence[Assignment], now_ms: int) -> list[ErrorCode]:
        """Record the log directories of replicas on this broker now."""
        plan = plan_assign_directories(self._state(), self._node_id, assignments)
        return self._carry_out(plan, now_ms)

    def assign_directories_soon(self, assignments: Sequence[Assignment], now_ms: int) -> None:
        """Record the log directories of replicas at the next tick."""
        self._assignments += assignments

    def directories_online(self, directories: Sequence[bytes], now_ms: int) -> None:
        """Record the directories that are left after some have failed."""
        if self.registration is not None:
            self._carry_out(plan_directories(self._state(), self._node_id, online=tuple(directories)), now_ms)

    def cordon(self, directories: Sequence[bytes]) -> None:
        """Record the cordoned directories at the next tick."""
        self._cordoned = tuple(directories)
        has_cordoned = self._log.image.record_versions.has_cordoned_directories
        self._is_cordoning = self.registration is not None and has_cordoned

    def _carry_out(self, plan: Plan[T], now_ms: int) -> T:
        self._commit(plan.records, now_ms, atomic=False)
        return plan.result
