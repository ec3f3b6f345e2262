"""The kind of fetch that a request is, by its session id and epoch (`context.py` has the kinds).

    session id  epoch     meaning                                               context
    any         −1        close that session, if there is one; open none        SessionlessContext
    any         0         close that session, if there is one; open a new one   FullContext
    known       expected  what changed since the last request of the session    IncrementalContext
    known       other     INVALID_FETCH_SESSION_EPOCH                           SessionErrorContext
    unknown     other     FETCH_SESSION_ID_NOT_FOUND                            SessionErrorContext

A session uses either topic ids or names. A request that changes this gets FETCH_SESSION_TOPIC_ID_ERROR. A session
without partitions is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

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
    PARTITIONS_PER_STEP,
    FetchSession,
    Identity,
    PartitionFetch,
)
from tailrace.fetch.sessions import FetchSessions
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.codegen.field_versions import FETCH_TOPIC_IDS
from tailrace.protocol.flat.fetch import FetchAsk, PartitionAsk

Topics: TypeAlias = Sequence[tuple[bytes | str, Sequence[PartitionAsk]]]
T = TypeVar("T")
V = TypeVar("V")


def context_of(
    ask: FetchAsk,
    version: int,
    sessions: FetchSessions,
    image: MetadataImage,
    is_follower: bool,
    now_ms: int,
) -> Steps[FetchContext]:
    """Return the context of a request. Its session is updated."""
    session_id, epoch = ask.session_id, ask.session_epoch
    uses_topic_ids = version >= FETCH_TOPIC_IDS
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if session_id != NO_SESSION:
            sessions.remove(session_id)
        if ask.partition_count > PARTITIONS_PER_STEP:
            partitions = yield from _partitions_of(ask, uses_topic_ids, image)
        else:
            partitions = {}
            _add(partitions, ask.topics, uses_topic_ids, image)
        if epoch == FINAL_EPOCH:
            return SessionlessContext(partitions)
        return FullContext(partitions, sessions, uses_topic_ids=uses_topic_ids, is_follower=is_follower)
    session = sessions.get(session_id)
    if session is None:
        return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != epoch:
        return SessionErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids != uses_topic_ids:
        return SessionErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    session.advance_epoch()
    context = IncrementalContext(session)
    if ask.topics or ask.forgotten:
        yield from _update(session, sessions, ask, uses_topic_ids, image)
    if not session.partitions:
        sessions.remove(session_id)
        return SessionlessContext((yield from _partitions_of(ask, uses_topic_ids, image)))
    if session.is_closed:  # closed during a pause
        return context
    if not sessions.keep(session, now_ms):
        return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return context


def _update(
    session: FetchSession, sessions: FetchSessions, ask: FetchAsk, by_id: bool, image: MetadataImage
) -> Steps[None]:
    """Add, change and remove the partitions that an incremental request names."""
    for topics in _pieces(ask.topics):
        for topic, partitions in topics:
            name, topic_id = _topic_of(topic, by_id, image)
            for asked in partitions:
                session.update((topic, asked[0]), name, topic_id, asked)
        yield
    for forgotten in _pieces(ask.forgotten):
        for topic, indexes in forgotten:
            for index in indexes:
                sessions.forget(session, (topic, index))
        yield


def _topic_of(topic: bytes | str, by_id: bool, image: MetadataImage) -> tuple[str | None, bytes]:
    """Return a topic's name, None while no topic has this id, and its id."""
    if not by_id:
        assert isinstance(topic, str)
        return topic, NO_TOPIC_ID
    assert isinstance(topic, bytes)
    found = image.topics_by_id.get(topic)
    return None if found is None else found.name, topic


def _partitions_of(ask: FetchAsk, by_id: bool, image: MetadataImage) -> Steps[dict[Identity, PartitionFetch]]:
    """Return every partition once. A partition that is named twice has the place of the first and the values of the
    last."""
    partitions: dict[Identity, PartitionFetch] = {}
    for topics in _pieces(ask.topics):
        _add(partitions, topics, by_id, image)
        yield
    return partitions


def _add(partitions: dict[Identity, PartitionFetch], topics: Topics, by_id: bool, image: MetadataImage) -> None:
    for topic, asked_partitions in topics:
        name, topic_id = _topic_of(topic, by_id, image)
        for asked in asked_partitions:
            identity = (topic, asked[0])
            fetch = partitions.get(identity)
            if fetch is None:
                partitions[identity] = PartitionFetch(identity, name, topic_id, asked)
            else:
                fetch.ask(asked)


def _pieces(topics: Sequence[tuple[T, Sequence[V]]]) -> Iterator[list[tuple[T, Sequence[V]]]]:
    """Cut topics into pieces. A topic counts as much as a partition."""
    piece: list[tuple[T, Sequence[V]]] = []
    room = PARTITIONS_PER_STEP
    for topic, values in topics:
        first = 0
        while first < len(values) or not first:
            some = values[first : first + room]
            piece.append((topic, some))
            first += len(some) or 1
            room -= len(some) + 1
            if room <= 0:
                yield piece
                piece, room = [], PARTITIONS_PER_STEP
    if piece:
        yield piece
