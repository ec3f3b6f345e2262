"""The kind of fetch that a request is, by its session id and epoch (`context.py` has the kinds).

    session id  epoch     meaning                                               context
    any         −1        close that session, if there is one; open none        SessionlessContext
    any         0         close that session, if there is one; open a new one   FullContext
    known       expected  what changed since the last request of the session    IncrementalContext
    known       other     INVALID_FETCH_SESSION_EPOCH                           SessionErrorContext
    unknown     other     FETCH_SESSION_ID_NOT_FOUND                            SessionErrorContext

A session uses topic ids or names, and cannot change: FETCH_SESSION_TOPIC_ID_ERROR. A session that is left without
partitions is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    Identity,
    PartitionFetch,
    next_epoch,
)
from tailrace.fetch.sessions import FetchSessions
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.field_versions import FETCH_TOPIC_IDS
from tailrace.protocol.messages import FetchRequest


def context_of(
    request: FetchRequest,
    version: int,
    sessions: FetchSessions,
    image: MetadataImage,
    *,
    is_follower: bool,
    now_ms: int,
) -> Steps[FetchContext]:
    """Return the context of a request, with its session brought up to date."""
    session_id, epoch = request.session_id, request.session_epoch
    uses_topic_ids = version >= FETCH_TOPIC_IDS
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if session_id != NO_SESSION:
            sessions.remove(session_id)
        partitions = yield from _partitions_of(request, version, image)
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
    session.epoch = next_epoch(epoch)
    context = IncrementalContext(session)
    yield from sessions.update(session, _asked(request, version, image), _forgotten(request, version))
    if not session.partitions:
        sessions.remove(session_id)
        return SessionlessContext((yield from _partitions_of(request, version, image)))
    if session.is_closed:  # during a pause
        return context
    if not sessions.keep(session, now_ms):
        return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return context


def _asked(
    request: FetchRequest, version: int, image: MetadataImage
) -> Iterator[tuple[PartitionFetch, FetchRequest.FetchPartition]]:
    by_id = version >= FETCH_TOPIC_IDS
    for topic in request.topics:
        name: str | None
        identity: bytes | str
        if by_id:
            found = image.topics_by_id.get(topic.topic_id)
            name = None if found is None else found.name
            topic_id = identity = topic.topic_id
        else:
            name = identity = topic.topic
            topic_id = NO_TOPIC_ID
        for asked in topic.partitions:
            yield PartitionFetch((identity, asked.partition), name, topic_id), asked


def _partitions_of(request: FetchRequest, version: int, image: MetadataImage) -> Steps[dict[Identity, PartitionFetch]]:
    """Return every partition once. A repeated partition keeps its first place and its last settings."""
    partitions: dict[Identity, PartitionFetch] = {}
    for number, (fetch, asked) in enumerate(_asked(request, version, image), 1):
        if not number % PARTITIONS_A_STEP:
            yield
        partitions.setdefault(fetch.identity, fetch).ask(asked)
    return partitions


def _forgotten(request: FetchRequest, version: int) -> Iterator[Identity]:
    for topic in request.forgotten_topics_data:
        identity = topic.topic_id if version >= FETCH_TOPIC_IDS else topic.topic
        for index in topic.partitions:
            yield identity, index
