"""Supervisor: starts shards, restarts those that end, and stops them in order. The time is an argument.

    start(now_s)          launch all shards
    tick(now_s)           notice shards that are ready or have ended; restart those whose pause is over
    request_stop()        stop: first all shards but the controller's, then shard 1. A second call hurries them

A shard that ends is restarted after a pause, which doubles while it keeps ending soon. If one ends before it was ever
ready, or several times in a row before it is ready again, `failure` has the reason and all shards are stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from tailrace.model.log_fields import fields

CONTROLLER: Final = 1  # the number of the shard that has the controller
FIRST_PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 30.0
STABLE_S: Final = 60.0  # a shard that has served for this time begins again with the first pause
FAILED_STARTS_MAX: Final = 5  # in a row
STOP_S_MAX: Final = 300.0
_log = logging.getLogger("tailrace.shards")


class Shard(Protocol):
    """A process, as in `shard_child.py`."""

    error: str | None

    @property
    def pid(self) -> int: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def is_ready(self) -> bool: ...
    @property
    def ending(self) -> str: ...
    @property
    def has_succeeded(self) -> bool: ...
    def announce_end(self, number: int) -> None: ...
    def request_stop(self) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class _Slot:
    number: int
    shard: Shard | None = None  # None: it has ended, or waits for its restart
    ready_s: float | None = None  # since when it serves
    restart_s: float | None = None
    pause_s: float = FIRST_PAUSE_S
    failed_starts: int = 0
    restarts: int = 0
    is_stopping: bool = False


class Supervisor:
    def __init__(self, count: int, launch: Callable[[int], Shard]) -> None:
        self._slots = [_Slot(number) for number in range(1, count + 1)]
        self._launch = launch
        self._has_served = False
        self._stop_requests = 0
        self._stop_began_s: float | None = None
        self.failure: str | None = None

    def start(self, now_s: float) -> None:
        for slot in self._slots:
            slot.shard = self._launch(slot.number)

    # State

    @property
    def has_served(self) -> bool:
        """True if all shards have been ready at once."""
        return self._has_served

    @property
    def is_ready(self) -> bool:
        return all(slot.ready_s is not None for slot in self._slots)

    @property
    def has_ended(self) -> bool:
        return self._is_stopping and not any(slot.shard for slot in self._slots)

    @property
    def restarts(self) -> dict[int, int]:
        """How often each shard was restarted, by number."""
        return {slot.number: slot.restarts for slot in self._slots}

    @property
    def ready_shards(self) -> dict[int, bool]:
        return {slot.number: slot.ready_s is not None for slot in self._slots}

    def not_ready_reason(self) -> str | None:
        if self._is_stopping:
            return "the shards are stopping"
        missing = [str(slot.number) for slot in self._slots if slot.ready_s is None]
        return f"shard {', '.join(missing)} is not ready" if missing else None

    def next_deadline_s(self) -> float | None:
        due = [slot.restart_s for slot in self._slots if slot.restart_s is not None]
        return None if self._is_stopping else min(due, default=None)

    @property
    def _is_stopping(self) -> bool:
        return self._stop_requests > 0 or self.failure is not None

    # Events

    def request_stop(self) -> None:
        self._stop_requests += 1
        if self._stop_requests > 1:
            for slot in self._slots:
                if slot.shard is not None and slot.is_stopping:
                    slot.shard.request_stop()  # a second signal ends the wait for pending responses

    def tick(self, now_s: float) -> None:
        for slot in self._slots:
            if slot.shard is not None and not slot.shard.is_running:
                self._ended(slot, slot.shard, now_s)
            elif slot.shard is not None and slot.ready_s is None and slot.shard.is_ready:
                self._became_ready(slot, slot.shard, now_s)
        self._has_served = self._has_served or self.is_ready
        if self._is_stopping:
            self._stop(now_s)
            return
        for slot in self._slots:
            if slot.restart_s is not None and slot.restart_s <= now_s:
                slot.restart_s = None
                slot.restarts += 1
                slot.shard = self._launch(slot.number)

    def _became_ready(self, slot: _Slot, shard: Shard, now_s: float) -> None:
        slot.ready_s = now_s
        slot.failed_starts = 0
        if slot.restarts:
            _log.info("shard serves again", extra=fields(shard=slot.number, pid=shard.pid))
        if slot.number == CONTROLLER:
            for other in self._slots:
                if other.ready_s is None and other.number != CONTROLLER and slot.restarts:
                    shard.announce_end(other.number)

    def _ended(self, slot: _Slot, shard: Shard, now_s: float) -> None:
        served_s = None if slot.ready_s is None else now_s - slot.ready_s
        shard.close()
        slot.shard = slot.ready_s = None
        if self._is_stopping:
            if not shard.has_succeeded:
                _log.warning("shard %s", shard.ending, extra=fields(shard=slot.number, pid=shard.pid))
            return
        reason = shard.error or f"its process {shard.ending}"
        if not self._has_served:
            self._fail(f"shard {slot.number} cannot start: {reason}")
            return
        if served_s is None:
            slot.failed_starts += 1
            if slot.failed_starts >= FAILED_STARTS_MAX:
                self._fail(f"shard {slot.number} cannot be restarted after {slot.failed_starts} attempts: {reason}")
                return
        elif served_s >= STABLE_S:
            slot.pause_s = FIRST_PAUSE_S
        _log.error(
            "a shard has ended and is restarted: %s", reason, extra=fields(shard=slot.number, pause_s=slot.pause_s)
        )
        slot.restart_s = now_s + slot.pause_s
        slot.pause_s = min(2 * slot.pause_s, PAUSE_S_MAX)
        controller = self._slots[CONTROLLER - 1]
        if controller.shard is not None and controller.ready_s is not None:
            controller.shard.announce_end(slot.number)

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason

    def _stop(self, now_s: float) -> None:
        """Stop the next shards in order: brokers hand over to the controller, which has to be there until then."""
        if self._stop_began_s is None:
            self._stop_began_s = now_s
        others = [slot for slot in self._slots if slot.number != CONTROLLER and slot.shard is not None]
        for slot in others or self._slots[:CONTROLLER]:
            if slot.shard is None:
                continue
            if not slot.is_stopping:
                slot.is_stopping = True
                slot.shard.request_stop()
            elif now_s - self._stop_began_s > STOP_S_MAX:
                _log.error("shard killed: it has not stopped in time", extra=fields(shard=slot.number))
                slot.shard.kill()
