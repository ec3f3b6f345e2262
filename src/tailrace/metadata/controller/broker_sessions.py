"""BrokerSessions: facts from heartbeats that are not in the metadata.

A broker has a session for broker.session.timeout.ms after each heartbeat. A registration alone begins none. When the
controller starts, each unfenced broker gets a session. Time in which the controller itself did not run does not count,
because heartbeats may have arrived and waited in that time.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.metadata.image.registrations import BrokerRegistration
from tailrace.model.ids import BrokerId, Offset

_NOTHING_READ: Offset = -1


class BrokerSessions:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._contacts: dict[tuple[BrokerId, int], int] = {}  # (broker, epoch) → time of the last heartbeat
        self._read: dict[BrokerId, Offset] = {}  # how far each broker has read the metadata
        self._leaving: dict[BrokerId, Offset] = {}  # where a controlled shutdown began
        self._checked_ms: int | None = None

    def begin(self, brokers: Iterable[BrokerRegistration], now_ms: int) -> None:
        """Give each unfenced broker a session, because the controller has just started."""
        self._checked_ms = now_ms
        for one in brokers:
            if not one.fenced:
                self._contacts[one.id, one.epoch] = now_ms

    def contact(self, broker_id: BrokerId, epoch: int, now_ms: int) -> None:
        """Note a heartbeat."""
        self._contacts[broker_id, epoch] = now_ms

    def is_valid(self, broker_id: BrokerId, epoch: int, now_ms: int) -> bool:
        """Return True if the session of that registration has not expired."""
        contact_ms = self._contacts.get((broker_id, epoch))
        return contact_ms is not None and now_ms - contact_ms <= self._timeout_ms

    def note_read(self, broker_id: BrokerId, offset: Offset, *, is_fenced: bool) -> None:
        """Note how far a broker has read the metadata. A fenced broker is no longer in controlled shutdown."""
        self._read[broker_id] = offset
        if is_fenced:
            self._leaving.pop(broker_id, None)

    def note_leaving(self, broker_id: BrokerId, offset: Offset) -> None:
        """Note where a controlled shutdown began, unless it is under way."""
        self._leaving.setdefault(broker_id, offset)

    def leaving_since(self, broker_id: BrokerId) -> Offset | None:
        return self._leaving.get(broker_id)

    def lowest_read(self, brokers: Iterable[BrokerRegistration], otherwise: Offset) -> Offset:
        """Return how far all of these brokers have read. Brokers in controlled shutdown do not count."""
        read = [self._read.get(one.id, _NOTHING_READ) for one in brokers if one.id not in self._leaving]
        return min(read, default=otherwise)

    def forget(self, broker_id: BrokerId) -> None:
        """Forget what a broker has reported, because its registration has changed. Its session continues."""
        self._read.pop(broker_id, None)
        self._leaving.pop(broker_id, None)

    # Expiry

    def expired(self, now_ms: int) -> list[tuple[BrokerId, int]]:
        """Return the expired sessions, as (broker, epoch)."""
        if self._checked_ms is not None and now_ms - self._checked_ms > self._timeout_ms // 2:
            idle_ms = now_ms - self._checked_ms
            self._contacts = {key: min(contact_ms + idle_ms, now_ms) for key, contact_ms in self._contacts.items()}
        self._checked_ms = now_ms
        return [key for key, contact_ms in self._contacts.items() if now_ms - contact_ms > self._timeout_ms]

    def end(self, broker_id: BrokerId, epoch: int) -> None:
        """End a session that has expired."""
        self._contacts.pop((broker_id, epoch), None)

    def next_deadline_ms(self) -> int | None:
        """Return when to look for expired sessions again; None without sessions."""
        if not self._contacts:
            self._checked_ms = None
            return None
        oldest_ms = min(self._contacts.values()) + self._timeout_ms + 1
        return oldest_ms if self._checked_ms is None else min(oldest_ms, self._checked_ms + self._timeout_ms // 4)
