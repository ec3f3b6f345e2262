"""The four kinds of fetch: which partitions are meant, and which of them the answer tells.

    SessionlessContext    the request's partitions, all told; no session
    FullContext           the request's partitions, all told; a session is opened with them if there is room
    IncrementalContext    the session's partitions, told as far as they have news
    SessionErrorContext   none; the answer is the error

The answer to a throttled client has no partitions and leaves the session as it is: what it was not told counts as news
the next time. A session whose epoch has moved on while a fetch waited (the client has sent the next request, perhaps
because it gave up on this one) is not updated either; the answer is INVALID_FETCH_SESSION_EPOCH.
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
# Notes what the client is sent of a partition. Returns True if the answer has to contain the partition.
Note: TypeAlias = Callable[[PartitionFetch, PartitionAnswer], bool]


class Told(NamedTuple):
    """The head of a fetch response, and the partitions that it contains."""

    error: ErrorCode
    session_id: int
    has_partitions: bool = True
    note: Note | None = None  # None: all of them


_ALL: Final = Told(ErrorCode.NONE, NO_SESSION)
_NOTHING: Final = Told(ErrorCode.NONE, NO_SESSION, False)


class SessionlessContext:
    __slots__ = ("partitions",)
    kind = "sessionless"
    session: FetchSession | None = None
    is_current = True

    def __init__(self, partitions: dict[Identity, PartitionFetch]) -> None:
        self.partitions = partitions

    def worth_telling(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """The answers that will be told, without telling them."""
        return answers

    def tell(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> Told:
        """Begin the answer for these partitions. In a session what the client is sent is kept, so that the next answer
        has only what is new."""
        return _ALL

    def tell_nothing(self) -> Told:
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

    def tell(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> Told:
        session = self._sessions.create(
            {fetch.identity: fetch for fetch, _ in chain(answers, refused)},
            is_privileged=self._is_follower,
            uses_topic_ids=self._uses_topic_ids,
            now_ms=now_ms,
        )
        return _ALL if session is None else Told(ErrorCode.NONE, session.id, note=_note)


def _note(fetch: PartitionFetch, answer: PartitionAnswer) -> bool:
    fetch.told(answer)
    return True


class IncrementalContext:
    __slots__ = ("_epoch", "session")
    kind = "incremental"

    def __init__(self, session: FetchSession, epoch: int | None = None) -> None:
        """`epoch`: that of the session when the request had come, which is now unless it has waited."""
        self.session = session
        self._epoch = session.epoch if epoch is None else epoch

    @property
    def partitions(self) -> dict[Identity, PartitionFetch]:
        return self.session.partitions

    @property
    def is_current(self) -> bool:
        """No later request of the session has come."""
        return self.session.epoch == self._epoch

    def worth_telling(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        if not self.is_current:
            return ()
        return [(fetch, answer) for fetch, answer in answers if fetch.is_news(answer)]

    def tell(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> Told:
        if not self.is_current:
            return Told(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.id, False)
        return Told(ErrorCode.NONE, self.session.id, note=self._note)

    def _note(self, fetch: PartitionFetch, answer: PartitionAnswer) -> bool:
        is_news = fetch.is_news(answer)
        if is_news and answer.records:
            self.session.to_the_end(fetch)
        fetch.told(answer)
        return is_news

    def tell_nothing(self) -> Told:
        error = ErrorCode.NONE if self.is_current else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return Told(error, self.session.id, False)


class SessionErrorContext(SessionlessContext):
    __slots__ = ("error",)
    kind = "session error"

    def __init__(self, error: ErrorCode) -> None:
        super().__init__({})
        self.error = error

    def tell(self, answers: Sequence[Answer], refused: Sequence[Refused], now_ms: int) -> Told:
        return Told(self.error, NO_SESSION, False)


FetchContext: TypeAlias = SessionlessContext | FullContext | IncrementalContext | SessionErrorContext
