"""FetchSessions: a bounded cache of fetch sessions.

When the cache is full, a new session takes the place of
1. a session that was not used for `min.incremental.fetch.session.eviction.ms`, or else
2. the smallest session that it may evict, if that one is smaller. A follower's session may evict any consumer's. Either
   kind may evict a session of its own kind that is older than that time.

Otherwise no session is created: the client gets id 0 and sends full requests. This also happens when all sessions
together would exceed `CONSUMER_PARTITIONS_MAX` partitions, or `FOLLOWER_PARTITIONS_MAX` for a follower's session. A
session that grows beyond that is closed. Apache Kafka counts sessions only.

`tick` evicts a session that was not used for that time, also if the cache has room. Apache Kafka keeps such a session
until its slot is needed. The partitions of a large session are freed a few at a time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from tailrace.fetch.session import NO_SESSION, FetchSession, Identity, PartitionFetch
from tailrace.protocol.flat.fetch import FetchAsk
from tailrace.waiting.purgatory import Purgatory

CONSUMER_PARTITIONS_MAX = 250_000  # about 400 bytes each
FOLLOWER_PARTITIONS_MAX = 1_000_000
FREED_A_TICK = 2_048
_ID_TRIES = 100  # there are 2^31 ids, of which about a thousand are usually taken


class SessionStatistics(NamedTuple):
    sessions: int
    partitions: int
    evictions: int


class FetchSessions:
    def __init__(
        self,
        purgatory: Purgatory,
        new_session_id: Callable[[], int],
        *,
        slots: int = 1_000,
        eviction_ms: int = 120_000,
    ) -> None:
        """`new_session_id` returns random positive ids, so that a client cannot guess another client's id."""
        self._purgatory = purgatory
        self._new_session_id = new_session_id
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}  # the least recently used one first
        self._freed: list[PartitionFetch] = []  # of closed sessions, still to be freed
        self._partitions = 0
        self._evictions = 0
        # Keys (is privileged, size, id), smallest first, of the sessions that a session of that kind may evict.
        self._evictable: tuple[list[tuple[bool, int, int]], list[tuple[bool, int, int]]] = ([], [])

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def partitions_in(self, ask: FetchAsk) -> int:
        """Return the number of partitions that a request concerns, with those of its session."""
        session = self._sessions.get(ask.session_id)
        return ask.partition_count + (0 if session is None else len(session))

    def create(
        self,
        partitions: dict[Identity, PartitionFetch],
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchSession | None:
        """Return a new session, or None if the cache is full and no session can be evicted."""
        if not self._has_room(len(partitions), now_ms, is_privileged=is_privileged):
            return None
        if len(self._sessions) >= self._slots and not self._evict_for(is_privileged, len(partitions), now_ms):
            return None
        session_id = self._unused_id()
        if session_id is None:
            return None
        session = FetchSession(
            session_id,
            partitions,
            is_privileged=is_privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
        )
        self._sessions[session_id] = session
        self.touch(session, now_ms)
        return session

    def forget(self, session: FetchSession, identity: Identity) -> None:
        """Remove a partition from a session."""
        session.forget(identity, self._purgatory)

    def keep(self, session: FetchSession, now_ms: int) -> bool:
        """Keep a session that was used just now. Return False, with the session closed, if it has grown too large."""
        self.touch(session, now_ms)
        if self._has_room(0, now_ms, is_privileged=session.is_privileged):
            return True
        self.remove(session.id)
        return False

    def _has_room(self, more: int, now_ms: int, *, is_privileged: bool) -> bool:
        """Return True if this many more partitions fit in the cache. Unused sessions are evicted to make room."""
        room = (FOLLOWER_PARTITIONS_MAX if is_privileged else CONSUMER_PARTITIONS_MAX) - more
        while self._partitions > room and (oldest := next(iter(self._sessions.values()), None)) is not None:
            if not self._is_unused(oldest, now_ms):
                return False
            self._evict(oldest)
        return self._partitions <= room

    def _unused_id(self) -> int | None:
        """Return an id that no session has, or None if all random ids were taken. The client then fetches without a
        session."""
        for _ in range(_ID_TRIES):
            session_id = self._new_session_id()
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id
        return None

    def _evict_for(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if self._is_unused(oldest, now_ms):
            self._evict(oldest)
            return True
        keys = self._evictable[is_privileged]
        if not keys or (is_privileged, size, NO_SESSION) < keys[0]:
            return False
        self._evict(self._sessions[keys[0][2]])
        return True

    def _evict(self, session: FetchSession) -> None:
        self._evictions += 1
        self.remove(session.id)

    def remove(self, session_id: int) -> bool:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        self._set_evictable(session, session.evictable_key, (False, False))
        self._partitions -= session.evictable_key[1]
        session.close(self._purgatory)
        if len(session) > FREED_A_TICK:
            self._freed += session.partitions.values()
        return True

    def tick(self, now_ms: int) -> None:
        """Evict the sessions that were not used for too long, and free some partitions of closed sessions."""
        while (oldest := next(iter(self._sessions.values()), None)) is not None and self._is_unused(oldest, now_ms):
            self._evict(oldest)
        del self._freed[-FREED_A_TICK:]

    def next_deadline_ms(self) -> int | None:
        if self._freed:
            return 0
        oldest = next(iter(self._sessions.values()), None)
        return None if oldest is None else oldest.last_used_ms + self._eviction_ms + 1

    def _is_unused(self, session: FetchSession, now_ms: int) -> bool:
        return now_ms - session.last_used_ms > self._eviction_ms

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Record that the session is used now. Its size may have changed."""
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.use(now_ms)
        is_old = now_ms - session.created_ms > self._eviction_ms
        # may be evicted by consumers' sessions, by followers' sessions
        by = (is_old, is_old or not session.is_privileged)
        if by != session.evictable_by or len(session.partitions) != session.evictable_key[1]:
            self._partitions += len(session.partitions) - session.evictable_key[1]
            self._set_evictable(session, (session.is_privileged, len(session.partitions), session.id), by)

    def _set_evictable(self, session: FetchSession, key: tuple[bool, int, int], by: tuple[bool, bool]) -> None:
        for keys, was_in, is_in in zip(self._evictable, session.evictable_by, by, strict=True):
            if was_in:
                del keys[bisect_left(keys, session.evictable_key)]
            if is_in:
                insort(keys, key)
        session.set_evictable(key, by)

    def newest(self, limit: int) -> list[FetchSession]:
        """Return the sessions that were used last, up to a limit."""
        return list(islice(reversed(self._sessions.values()), limit))

    def statistics(self) -> SessionStatistics:
        return SessionStatistics(len(self._sessions), self._partitions, self._evictions)
