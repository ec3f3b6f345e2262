"""The four kinds of fetch: which partitions are fetched, and which of them the response contains.

    SessionlessContext    the request's partitions, all in the response; no session
    FullContext           the request's partitions, all in the response; opens a session if there is room
    IncrementalContext    the session's partitions; the response contains those with changes
    SessionErrorContext   no partitions; the response is the error

The response to a throttled client has no partitions and does not update the session. Changes that it leaves out are in
the next response. If the session's epoch has changed while a fetch waited, the client has sent another request. The
session is then not updated either, and the response is INVALID_FETCH_SESSION_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from tailrace.fetch.session import NO_SESSION, FetchSession, Identity, PartitionFetch
from tailrace.fetch.sessions import FetchSessions
from tailrace.model.errors import ErrorCode
from tailrace.protocol.flat.fetch import PartitionAnswer

Answer: TypeAlias = tuple[PartitionFetch, PartitionAnswer]
Refused: TypeAlias = tuple[PartitionFetch, ErrorCode]
# Record what the response contains of a partition. Return True if the response has to contain the partition.
Includes: TypeAlias = Callable[[PartitionFetch, PartitionAnswer], bool]


class ResponseHead(NamedTuple):
    """The head of a fetch response, and the partitions that it contains."""

    error: ErrorCode
    session_id: int
    has_partitions: bool = True
    includes: Includes | None = None  # None: the response contains all partitions


_ALL: Final = ResponseHead(ErrorCode.NONE, NO_SESSION)
_NOTHING: Final = ResponseHead(ErrorCode.NONE, NO_SESSION, False)


class SessionlessContext:
    __slots__ = ("partitions",)
    kind = "sessionless"
    session: FetchSession | None = None
    is_current = True

    def __init__(self, partitions: dict[Identity, PartitionFetch]) -> None:
        self.partitions = partitions

    def changed_answers(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return the answers that the response will contain, without updating the session."""
        return answers

    def begin_response(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> ResponseHead:
        """Begin the response for these partitions. In a session, record what the client is sent, so that the next
        response has only changes."""
        return _ALL

    def begin_empty_response(self) -> ResponseHead:
        return _NOTHING


class FullContext(SessionlessContext):
    __slots__ = ("_is_follower", "_sessions", "_uses_topic_ids")
    kind = "full"

    def __init__(
        self,
        partitions: dict[Identity, PartitionFetch],
        sessions: FetchSessions,
        *,
        uses_topic_ids: bool,
        is_follower: bool,
    ) -> None:
        super().__init__(partitions)
        self._sessions = sessions
        self._uses_topic_ids = uses_topic_ids
        self._is_follower = is_follower

    def begin_response(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> ResponseHead:
        session = self._sessions.create(
            {fetch.identity: fetch for fetch, _ in chain(answers, refused)},
            is_privileged=self._is_follower,
            uses_topic_ids=self._uses_topic_ids,
            now_ms=now_ms,
        )
        return _ALL if session is None else ResponseHead(ErrorCode.NONE, session.id, includes=_record_sent)


def _record_sent(fetch: PartitionFetch, answer: PartitionAnswer) -> bool:
    fetch.record_sent(answer)
    return True


class IncrementalContext:
    __slots__ = ("_epoch", "session")
    kind = "incremental"

    def __init__(self, session: FetchSession, epoch: int | None = None) -> None:
        """`epoch` is the session's epoch when the request arrived. None: the current one."""
        self.session = session
        self._epoch = session.epoch if epoch is None else epoch

    @property
    def partitions(self) -> dict[Identity, PartitionFetch]:
        return self.session.partitions

    @property
    def is_current(self) -> bool:
        """Return True if no later request of the session has arrived."""
        return self.session.epoch == self._epoch

    def changed_answers(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        if not self.is_current:
            return ()
        return [(fetch, answer) for fetch, answer in answers if fetch.must_be_sent(answer)]

    def begin_response(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> ResponseHead:
        if not self.is_current:
            return ResponseHead(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.id, False)
        return ResponseHead(ErrorCode.NONE, self.session.id, includes=self._record_sent)

    def _record_sent(self, fetch: PartitionFetch, answer: PartitionAnswer) -> bool:
        must_be_sent = fetch.must_be_sent(answer)
        if must_be_sent and answer.records:
            self.session.move_to_end(fetch)
        fetch.record_sent(answer)
        return must_be_sent

    def begin_empty_response(self) -> ResponseHead:
        error = ErrorCode.NONE if self.is_current else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return ResponseHead(error, self.session.id, False)


class SessionErrorContext(SessionlessContext):
    __slots__ = ("error",)
    kind = "session error"

    def __init__(self, error: ErrorCode) -> None:
        super().__init__({})
        self.error = error

    def begin_response(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> ResponseHead:
        return ResponseHead(self.error, NO_SESSION, False)


FetchContext: TypeAlias = SessionlessContext | FullContext | IncrementalContext | SessionErrorContext
