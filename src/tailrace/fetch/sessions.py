"""FetchSessions: a bounded cache of sessions, and which kind of fetch a request is.

    session id  epoch     meaning                                               context
    any         −1        close that session, if there is one; open none        SessionlessContext
    any         0         close that session, if there is one; open a new one   FullContext
    known       expected  what changed since the last request of the session    IncrementalContext
    known       other     INVALID_FETCH_SESSION_EPOCH                           SessionErrorContext
    unknown     other     FETCH_SESSION_ID_NOT_FOUND                            SessionErrorContext

A session uses topic ids or names, and cannot change: FETCH_SESSION_TOPIC_ID_ERROR.
One that is left without partitions is closed.

When the cache is full a new session takes the place of
1. one that was not used for `min.incremental.fetch.session.eviction.ms`, or else
2. the smallest that it may evict, if that is smaller: a follower's session may evict any consumer's, and either kind
   any of its own kind that is older than that time.
Otherwise there is no session, the client gets id 0 and sends full requests. The same happens when all sessions together
would have more partitions than `CONSUMER_PARTITIONS_MAX`, or `FOLLOWER_PARTITIONS_MAX` with a follower's. A session
that grows beyond that is closed. Apache Kafka counts sessions only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tailrace.fetch.context import (
    FetchContext,
    FullContext,
    IncrementalContext,
    SessionErrorContext,
    SessionlessContext,
)
from tailrace.fetch.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    NO_TOPIC_ID,
    PARTITIONS_A_STEP,
    FetchSession,
    Identity,
    PartitionFetch,
    next_epoch,
)
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.field_versions import FETCH_TOPIC_IDS
from tailrace.protocol.flat.fetch import FetchAsk
from tailrace.waiting.purgatory import Purgatory

CONSUMER_PARTITIONS_MAX = 250_000  # some 400 bytes each
FOLLOWER_PARTITIONS_MAX = 1_000_000
_ID_TRIES = 100  # of two thousand million ids, with a thousand taken as a rule


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
        """`new_session_id` gives random positive ids: a client must not guess another's."""
        self._purgatory = purgatory
        self._new_session_id = new_session_id
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}  # the least recently used one first
        self._partitions = 0
        self._evictions = 0
        # Keys (is privileged, size, id), smallest first, of those that may be evicted by sessions of that kind.
        self._evictable: tuple[list[tuple[bool, int, int]], list[tuple[bool, int, int]]] = ([], [])

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    # What a request means

    def partitions_in(self, ask: FetchAsk) -> int:
        """Return how many partitions a request is about, with those of its session."""
        session = self._sessions.get(ask.session_id)
        return ask.partition_count + (0 if session is None else len(session))

    def context_for(
        self, ask: FetchAsk, version: int, image: MetadataImage, *, is_follower: bool, now_ms: int
    ) -> Steps[FetchContext]:
        """Return which kind of fetch a request is."""
        session_id, epoch = ask.session_id, ask.session_epoch
        by_id = version >= FETCH_TOPIC_IDS
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self.remove(session_id)
            partitions = yield from _partitions_of(ask, by_id, image)
            if epoch == FINAL_EPOCH:
                return SessionlessContext(partitions)
            return FullContext(partitions, partial(self.create, is_privileged=is_follower, uses_topic_ids=by_id))
        session = self._sessions.get(session_id)
        if session is None:
            return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return SessionErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != by_id:
            return SessionErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = next_epoch(epoch)
        context = IncrementalContext(session)
        if ask.topics or ask.forgotten:
            yield from self._update(session, ask, by_id, image)
        if not session.partitions:
            self.remove(session_id)
            return SessionlessContext((yield from _partitions_of(ask, by_id, image)))
        if session.is_closed:  # during a pause
            return context
        self.touch(session, now_ms)
        if not self._has_room(0, now_ms, is_privileged=session.is_privileged):
            self.remove(session_id)
            return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return context

    def _update(self, session: FetchSession, ask: FetchAsk, by_id: bool, image: MetadataImage) -> Steps[None]:
        """Take over what an incremental request changes."""
        number = 0
        for topic, partitions in ask.topics:
            name, topic_id = _topic_of(topic, by_id, image)
            for asked in partitions:
                session.update((topic, asked[0]), name, topic_id, asked)
                number += 1
                if not number % PARTITIONS_A_STEP:
                    yield
        for topic, indexes in ask.forgotten:
            for index in indexes:
                session.forget((topic, index), self._purgatory)
                number += 1
                if not number % PARTITIONS_A_STEP:
                    yield

    # The cache

    def create(
        self, partitions: dict[Identity, PartitionFetch], now_ms: int, *, is_privileged: bool, uses_topic_ids: bool
    ) -> FetchSession | None:
        """Open a session, if there is room or room can be made."""
        if not self._has_room(len(partitions), now_ms, is_privileged=is_privileged):
            return None
        if len(self._sessions) >= self._slots and not self._evict_for(is_privileged, len(partitions), now_ms):
            return None
        session_id = self._unused_id()
        if session_id is None:
            return None
        session = FetchSession(
            session_id, partitions, is_privileged=is_privileged, uses_topic_ids=uses_topic_ids, now_ms=now_ms
        )
        self._sessions[session_id] = session
        self.touch(session, now_ms)
        return session

    def _has_room(self, more: int, now_ms: int, *, is_privileged: bool) -> bool:
        """Return whether so many partitions more may be remembered, perhaps instead of those of unused sessions."""
        room = (FOLLOWER_PARTITIONS_MAX if is_privileged else CONSUMER_PARTITIONS_MAX) - more
        while self._partitions > room and (oldest := next(iter(self._sessions.values()), None)) is not None:
            if now_ms - oldest.last_used_ms <= self._eviction_ms:
                return False
            self._evict(oldest)
        return self._partitions <= room

    def _unused_id(self) -> int | None:
        """An id that no session has; None where the dice give none, and the client fetches without a session."""
        for _ in range(_ID_TRIES):
            session_id = self._new_session_id()
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id
        return None

    def _evict_for(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
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
        return True

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """It is used now, and may have another size than before."""
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.last_used_ms = now_ms
        is_old = now_ms - session.created_ms > self._eviction_ms
        by = (is_old, is_old or not session.is_privileged)  # by consumers' sessions, by followers'
        if by != session.evictable_by or len(session.partitions) != session.evictable_key[1]:
            self._partitions += len(session.partitions) - session.evictable_key[1]
            self._set_evictable(session, (session.is_privileged, len(session.partitions), session.id), by)

    def _set_evictable(self, session: FetchSession, key: tuple[bool, int, int], by: tuple[bool, bool]) -> None:
        for keys, was_in, is_in in zip(self._evictable, session.evictable_by, by, strict=True):
            if was_in:
                del keys[bisect_left(keys, session.evictable_key)]
            if is_in:
                insort(keys, key)
        session.evictable_key, session.evictable_by = key, by

    def statistics(self) -> SessionStatistics:
        return SessionStatistics(len(self._sessions), self._partitions, self._evictions)


def _topic_of(topic: bytes | str, by_id: bool, image: MetadataImage) -> tuple[str | None, bytes]:
    """Return a topic's name, None while no topic has this id, and its id."""
    if not by_id:
        assert isinstance(topic, str)
        return topic, NO_TOPIC_ID
    assert isinstance(topic, bytes)
    found = image.topics_by_id.get(topic)
    return None if found is None else found.name, topic


def _partitions_of(ask: FetchAsk, by_id: bool, image: MetadataImage) -> Steps[dict[Identity, PartitionFetch]]:
    """Return every partition once. One that is named twice keeps its first place and its last request."""
    partitions: dict[Identity, PartitionFetch] = {}
    for topic, asked_partitions in ask.topics:
        name, topic_id = _topic_of(topic, by_id, image)
        for asked in asked_partitions:
            identity = (topic, asked[0])
            fetch = partitions.get(identity)
            if fetch is None:
                fetch = partitions[identity] = PartitionFetch(identity, name, topic_id)
                if not len(partitions) % PARTITIONS_A_STEP:
                    yield
            fetch.ask(asked)
    return partitions
