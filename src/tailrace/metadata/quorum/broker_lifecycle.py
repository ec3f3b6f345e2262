"""BrokerLifecycle: a broker registers with the active controller, is let in, stays in by its heartbeats, and leaves.

    REGISTERING ──epoch──► STARTING ──caught up──► RECOVERY ──unfenced──► RUNNING ──leave()──► LEAVING ──may go──► LEFT

A broker that leaves asks to be fenced at the same time, which gives away what it leads just as a controlled shutdown
does, but does not mark it as one that is shutting down: so the same incarnation may come back at once (`come_back`),
where another one has to wait until the session of this one is over.

A broker that says nothing for broker.session.timeout.ms is fenced and loses what it leads. So this is driven by a
thread of its own, with a connection of its own (`server/peers/heartbeats.py`): a busy loop must not cost a broker its
place. The thread calls `next_request`, `answered` and `failed`. The broker's own thread sets the inputs, which are
plain values, and reads the state; each is written on one side only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final

from tailrace.metadata.image.features import SUPPORTED, VersionRange
from tailrace.metadata.image.registrations import BrokerRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.log_fields import fields
from tailrace.protocol.message import Message
from tailrace.protocol.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest

SOON_MS: Final = 10  # what is waited for is about to happen
SHUTDOWN_MS: Final = 50
BACKOFF_MS: Final = 100
BACKOFF_MS_MAX: Final = 10_000
SESSION_BACKOFF_MS_MAX: Final = 250  # a session of another incarnation ends within seconds

# Nothing that time would heal.
FATAL: Final = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
_log = logging.getLogger(__name__)


class LifecycleState(IntEnum):
    REGISTERING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    LEAVING = 4
    LEFT = 5


@dataclass(slots=True)
class HeartbeatInputs:
    """Facts that the broker reports with its heartbeats; written by the broker's thread."""

    metadata_offset: int = -1  # up to where it has applied the metadata
    is_ready: bool = False  # its logs are open: it may be unfenced
    leaves: bool = False
    offline: tuple[bytes, ...] = ()  # ids of failed directories
    cordoned: tuple[bytes, ...] | None = None  # None: the cluster does not know of such yet
    registration: int = 0  # counts up when the broker has to register once more


@dataclass(slots=True)
class BrokerLifecycle:
    registration: BrokerRegistration
    cluster_id: str
    previous_epoch: int = -1
    heartbeat_interval_ms: int = 2_000
    inputs: HeartbeatInputs = field(default_factory=HeartbeatInputs)
    moved: Callable[[], object] = lambda: None  # told by the thread when the state is another

    # Written by the thread.
    state: LifecycleState = LifecycleState.REGISTERING
    epoch: int = -1
    is_fenced: bool = True
    refusal: KafkaError | None = None  # why the controller does not let it in
    due_ms: int = 0  # when to say something next
    told_offline: tuple[bytes, ...] = ()  # what the controller has heard of
    _registration: int = 0  # the count that was last acted on
    _failures: int = 0
    _is_first_farewell: bool = True
    _wake: Callable[[], None] = lambda: None  # makes the thread look again

    # The broker's thread

    @property
    def has_caught_up(self) -> bool:
        return self.state >= LifecycleState.RECOVERY

    @property
    def has_left(self) -> bool:
        return self.state is LifecycleState.LEFT

    def come_back(self, known: BrokerRegistration | None) -> bool:
        """Register as the incarnation that the cluster knows, if that one left in order and nobody came since; before
        the thread begins. Only after a clean stop: what a broker had is believed to be there."""
        one = self.registration
        if (
            known is None
            or known.epoch != self.previous_epoch
            or not known.fenced
            or known.in_controlled_shutdown
            or set(known.directories) != set(one.directories)
        ):
            return False
        self.registration = replace(one, incarnation_id=known.incarnation_id)
        return True

    def wake_by(self, wake: Callable[[], None]) -> None:
        """Use `wake` to make the thread look again."""
        self._wake = wake

    def hurry(self) -> None:
        """Send the next heartbeat now."""
        self._wake()

    def report_metadata(self, offset: int) -> None:
        """Report with the next heartbeat how far the metadata is applied."""
        self.inputs.metadata_offset = offset

    def report_ready(self) -> None:
        """Ask to be unfenced."""
        self.inputs.is_ready = True
        self.hurry()

    def report_offline(self, directories: tuple[bytes, ...]) -> None:
        """Report failed directories."""
        self.inputs.offline = directories
        self.hurry()

    def report_cordoned(self, directories: tuple[bytes, ...]) -> None:
        """Report with the next heartbeat the directories that take no new replicas."""
        self.inputs.cordoned = directories

    def register_again(self) -> None:
        self.inputs.registration += 1
        self.hurry()

    def leave(self) -> None:
        """Ask for a controlled shutdown."""
        self.inputs.leaves = True
        self.hurry()

    # The heartbeats' thread

    def next_request(self) -> Message:
        if self.state is LifecycleState.REGISTERING or self._registration != self.inputs.registration:
            self._registration = self.inputs.registration
            return self._registration_request()
        if self.inputs.leaves and self.state < LifecycleState.LEAVING:
            self._go_to(LifecycleState.LEAVING)
        inputs = self.inputs
        return BrokerHeartbeatRequest(
            broker_id=self.registration.id,
            broker_epoch=self.epoch,
            current_metadata_offset=inputs.metadata_offset,
            want_fence=not inputs.is_ready or self.state is LifecycleState.LEAVING,
            want_shut_down=self.state is LifecycleState.LEAVING,
            offline_log_dirs=list(inputs.offline),
            cordoned_log_dirs=None if inputs.cordoned is None else list(inputs.cordoned),
        )

    def _registration_request(self) -> BrokerRegistrationRequest:
        one = self.registration
        features: dict[str, VersionRange] = dict(one.features or SUPPORTED)
        return BrokerRegistrationRequest(
            broker_id=one.id,
            cluster_id=self.cluster_id,
            incarnation_id=one.incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=endpoint.listener,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=endpoint.security_protocol,
                )
                for endpoint in one.endpoints.values()
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.low, max_supported_version=levels.high
                )
                for name, levels in features.items()
            ],
            rack=one.rack,
            log_dirs=sorted(one.directories),
            previous_broker_epoch=self.previous_epoch,
        )

    def answered(self, request: Message, response: Any, now_ms: int) -> None:
        code = response.error_code
        if code:
            self._refused(request, ErrorCode(code), now_ms)
            return
        self._failures = 0
        if isinstance(request, BrokerRegistrationRequest):
            self.epoch = response.broker_epoch
            _log.info("registered", extra=fields(broker_epoch=self.epoch))
            self.due_ms = now_ms
            if self.state is LifecycleState.REGISTERING:
                self._go_to(LifecycleState.STARTING)
            return
        self.is_fenced = response.is_fenced
        self.told_offline = tuple(getattr(request, "offline_log_dirs", ()))
        self.due_ms = now_ms + self.heartbeat_interval_ms
        match self.state:
            case LifecycleState.STARTING:
                self.due_ms = now_ms + SOON_MS
                if response.is_caught_up:
                    self._go_to(LifecycleState.RECOVERY)
            case LifecycleState.RECOVERY if not response.is_fenced:
                self._go_to(LifecycleState.RUNNING)
            case LifecycleState.LEAVING:
                if response.should_shut_down:
                    self._go_to(LifecycleState.LEFT)
                elif self._is_first_farewell:
                    self._is_first_farewell = False
                    self.due_ms = now_ms + SHUTDOWN_MS
            case _:
                pass

    def _refused(self, request: Message, code: ErrorCode, now_ms: int) -> None:
        kind = "registration" if isinstance(request, BrokerRegistrationRequest) else "heartbeat"
        is_waiting = code is ErrorCode.DUPLICATE_BROKER_REGISTRATION and self._failures > 0
        _log.log(logging.DEBUG if is_waiting else logging.WARNING, "the controller refuses a %s: %s", kind, code.name)
        if kind == "registration":
            self.refusal = KafkaError(
                code, f"the controller does not let broker {self.registration.id} in: {code.name}"
            )
            if code in FATAL:
                self.moved()
        elif code is ErrorCode.BROKER_ID_NOT_REGISTERED:
            # Somebody has made the cluster forget a broker that is alive.
            self.previous_epoch = -1
            self._go_to(LifecycleState.REGISTERING)
        self.failed(now_ms)
        if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            self.due_ms = min(self.due_ms, now_ms + SESSION_BACKOFF_MS_MAX)

    def failed(self, now_ms: int) -> None:
        """There was no answer, or one that says: later."""
        self.due_ms = now_ms + min(BACKOFF_MS << min(self._failures, 10), BACKOFF_MS_MAX, self.heartbeat_interval_ms)
        self._failures += 1

    def _go_to(self, state: LifecycleState) -> None:
        self.state = state
        _log.info("broker state", extra=fields(state=state.name, broker_epoch=self.epoch))
        self.moved()
