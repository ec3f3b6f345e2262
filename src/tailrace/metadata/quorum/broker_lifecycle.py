"""BrokerLifecycle: a broker's registration at the active controller, its heartbeats, and its controlled shutdown.

    REGISTERING ──epoch──► STARTING ──caught up──► RECOVERY ──unfenced──► RUNNING ──leave()──► LEAVING ──may go──► LEFT

A broker that leaves also asks to be fenced. Like a controlled shutdown, that moves its leaderships, but it does not
mark the broker as shutting down. So the same incarnation may return at once (`resume_registration`). Another
incarnation has to wait until this one's session has expired.

A broker without heartbeats for broker.session.timeout.ms is fenced and loses its leaderships. So heartbeats have their
own thread and connection (`server/peers/heartbeats.py`), and a busy loop does not delay them. That thread calls
`next_request`, `answered` and `failed`. The broker's own thread sets the inputs, which are plain values, and reads the
state. Each is written by one thread only.
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

SOON_MS: Final = 10  # the next state is expected at once
SHUTDOWN_MS: Final = 50
BACKOFF_MS: Final = 100
BACKOFF_MS_MAX: Final = 10_000
SESSION_BACKOFF_MS_MAX: Final = 250  # the session of another incarnation expires within seconds

# Errors that retrying cannot fix.
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
    """The broker's state, to be reported with heartbeats; written by the broker's thread."""

    metadata_offset: int = -1  # metadata is applied up to here
    is_ready: bool = False  # the logs are open, so the broker may be unfenced
    leaves: bool = False
    offline: tuple[bytes, ...] = ()  # ids of failed directories
    cordoned: tuple[bytes, ...] | None = None  # None: metadata.version does not support cordoning
    registration: int = 0  # incremented when the broker has to register again


@dataclass(slots=True)
class BrokerLifecycle:
    registration: BrokerRegistration
    cluster_id: str
    previous_epoch: int = -1
    heartbeat_interval_ms: int = 2_000
    inputs: HeartbeatInputs = field(default_factory=HeartbeatInputs)
    state_changed: Callable[[], object] = lambda: None  # called by the heartbeats' thread after each change of state

    # Written by the heartbeats' thread.
    state: LifecycleState = LifecycleState.REGISTERING
    epoch: int = -1
    is_fenced: bool = True
    refusal: KafkaError | None = None  # why the controller refuses the registration
    due_ms: int = 0  # when the next request is due
    reported_offline: tuple[bytes, ...] = ()  # failed directories that the controller has received
    _registration: int = 0  # `inputs.registration` at the last registration
    _failures: int = 0
    _is_first_farewell: bool = True
    _wake: Callable[[], None] = lambda: None  # wakes the heartbeats' thread

    # The broker's thread

    @property
    def has_caught_up(self) -> bool:
        return self.state >= LifecycleState.RECOVERY

    @property
    def has_left(self) -> bool:
        return self.state is LifecycleState.LEFT

    def resume_registration(self, known: BrokerRegistration | None) -> bool:
        """Register as the known incarnation, if it has left in order and no other has registered since.

        Call this before the thread starts, and only after a clean stop: the controller assumes that the broker still
        has all its records.
        """
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

    def set_wake(self, wake: Callable[[], None]) -> None:
        """Set the function that wakes the heartbeats' thread."""
        self._wake = wake

    def send_soon(self) -> None:
        """Wake the thread, so that it sends the next heartbeat now."""
        self._wake()

    def report_metadata(self, offset: int) -> None:
        """Report with the next heartbeat how far the metadata is applied."""
        self.inputs.metadata_offset = offset

    def report_ready(self) -> None:
        """Ask to be unfenced."""
        self.inputs.is_ready = True
        self.send_soon()

    def report_offline(self, directories: tuple[bytes, ...]) -> None:
        """Report failed directories."""
        self.inputs.offline = directories
        self.send_soon()

    def report_cordoned(self, directories: tuple[bytes, ...]) -> None:
        """Report with the next heartbeat the directories that take no new replicas."""
        self.inputs.cordoned = directories

    def register_again(self) -> None:
        self.inputs.registration += 1
        self.send_soon()

    def leave(self) -> None:
        """Ask for a controlled shutdown."""
        self.inputs.leaves = True
        self.send_soon()

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
        self.reported_offline = tuple(getattr(request, "offline_log_dirs", ()))
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
        _log.log(logging.DEBUG if is_waiting else logging.WARNING, "the controller refused the %s: %s", kind, code.name)
        if kind == "registration":
            self.refusal = KafkaError(
                code, f"the controller refused the registration of broker {self.registration.id}: {code.name}"
            )
            if code in FATAL:
                self.state_changed()
        elif code is ErrorCode.BROKER_ID_NOT_REGISTERED:
            # An administrator has unregistered a running broker.
            self.previous_epoch = -1
            self._go_to(LifecycleState.REGISTERING)
        self.failed(now_ms)
        if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            self.due_ms = min(self.due_ms, now_ms + SESSION_BACKOFF_MS_MAX)

    def failed(self, now_ms: int) -> None:
        """Retry later: there was no response, or one with a retriable error."""
        self.due_ms = now_ms + min(BACKOFF_MS << min(self._failures, 10), BACKOFF_MS_MAX, self.heartbeat_interval_ms)
        self._failures += 1

    def _go_to(self, state: LifecycleState) -> None:
        self.state = state
        _log.info("broker state", extra=fields(state=state.name, broker_epoch=self.epoch))
        self.state_changed()
