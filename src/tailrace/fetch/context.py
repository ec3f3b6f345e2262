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

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tailrace.fetch.session import NO_SESSION, PARTITIONS_A_STEP, FetchSession, Identity, PartitionFetch
from tailrace.fetch.sessions import FetchSessions
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.flat.fetch import PartitionAnswer

Answer: TypeAlias = tuple[PartitionFetch, PartitionAnswer]


class Told(NamedTuple):
    """What an answer says above its partitions, and its partitions."""

    error: ErrorCode
    session_id: int
    answers: Sequence[Answer]


class SessionlessContext:
    __slots__ = ("partitions",)
    kind = "sessionless"

    def __init__(self, partitions: dict[Identity, PartitionFetch]) -> None:
        self.partitions = partitions

    @property
    def session(self) -> FetchSession | None:
        return None

    @property
    def is_current(self) -> bool:
        return True

    def worth_telling(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """The answers that will be told, without telling them."""
        return answers

    def tell(self, answers: Sequence[Answer], now_ms: int) -> Steps[Told]:
        """Return what the client is told. In a session it is kept, so that the next answer has only what is new."""
        yield from ()
        return Told(ErrorCode.NONE, NO_SESSION, answers)

    def tell_nothing(self) -> Told:
        return Told(ErrorCode.NONE, NO_SESSION, ())


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

    def tell(self, answers: Sequence[Answer], now_ms: int) -> Steps[Told]:
        session = self._sessions.create(
            {fetch.identity: fetch for fetch, _ in answers},
            is_privileged=self._is_follower,
            uses_topic_ids=self._uses_topic_ids,
            now_ms=now_ms,
        )
        if session is None:
            return Told(ErrorCode.NONE, NO_SESSION, answers)
        for number, (fetch, answer) in enumerate(answers, 1):
            if not number % PARTITIONS_A_STEP:
                yield
            fetch.told(answer)
        return Told(ErrorCode.NONE, session.id, answers)


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

    def tell(self, answers: Sequence[Answer], now_ms: int) -> Steps[Told]:
        session = self.session
        if not self.is_current:
            return Told(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, ())
        told = []
        for number, (fetch, answer) in enumerate(answers, 1):
            if not number % PARTITIONS_A_STEP:
                yield
            if fetch.is_news(answer):
                told.append((fetch, answer))
                if answer.records:
                    session.to_the_end(fetch)
            fetch.told(answer)
        return Told(ErrorCode.NONE, session.id, told)

    def tell_nothing(self) -> Told:
        error = ErrorCode.NONE if self.is_current else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return Told(error, self.session.id, ())


class SessionErrorContext(SessionlessContext):
    __slots__ = ("error",)
    kind = "session error"

    def __init__(self, error: ErrorCode) -> None:
        super().__init__({})
        self.error = error

    def tell(self, answers: Sequence[Answer], now_ms: int) -> Steps[Told]:
        yield from ()
        return Told(self.error, NO_SESSION, ())


FetchContext: TypeAlias = SessionlessContext | FullContext | IncrementalContext | SessionErrorContext
