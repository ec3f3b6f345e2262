"""Fetches: takes a Fetch request from its session to its answer.

    request ─► context (sessions.py) ─► plan (fetch_plan.py) ─► read (read.py) ─► enough? ─► answer
                                                                  ▲                 │ no
                                                                  └── DelayedFetch ◄┘   (delayed_fetch.py)

A request is answered at once if it does not want to wait, if nothing of it can be read, if there are `min_bytes`, an
error, a diverging epoch, a preferred replica, or a high watermark that a follower's own readers wait for. Otherwise it
waits, and is read again when it is woken.

The caller gets a `Fetch` when it is ready: now, within `start`, or later. It then asks for `make_answer()`, which
updates the session, or, if the client is over its quota, for `throttled_answer()`, which does not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, TypeAlias

from tailrace.fetch.context import Answer, FetchContext
from tailrace.fetch.delayed_fetch import DelayedFetch, Reason
from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, converted
from tailrace.fetch.fetch_plan import (
    INT_MAX,
    FetchAuthorizer,
    FetchParams,
    FetchPlan,
    plan_fetch,
    unsettled,
)
from tailrace.fetch.isolation import check_level, is_consumer, is_follower
from tailrace.fetch.read import PartitionReader, ReadResult
from tailrace.fetch.response import adapt_errors, build_answer, refusal
from tailrace.fetch.session import PARTITIONS_A_STEP, PartitionFetch
from tailrace.fetch.sessions import FetchSessions
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.steps import Steps, run_steps
from tailrace.protocol.flat.fetch import FLAT_VERSIONS, FetchAnswer, FetchAsk, PartitionAnswer, parts_of
from tailrace.waiting.purgatory import Purgatory

DEFAULT_MAX_BYTES = 57_671_680  # fetch.max.bytes
PARTITIONS_AT_ONCE = 1_024  # some ten milliseconds
ANSWER_BYTES = 64  # of a partition without its records, roughly
Later: TypeAlias = Callable[[Steps[None], int], None]
OnReady: TypeAlias = "Callable[[Fetch, int], Steps[None] | None]"


class Fetch:
    """One request on its way."""

    __slots__ = (
        "_answer",
        "_fetches",
        "_generation",
        "_later",
        "_refused",
        "answers",
        "context",
        "listener",
        "operation",
        "params",
        "parked_ms",
        "plan",
        "ready_ms",
        "reason",
        "received_ms",
        "size",
        "skips_settled",
        "version",
        "woken_by",
    )

    def __init__(
        self,
        fetches: Fetches,
        context: FetchContext,
        params: FetchParams,
        version: int,
        listener: str,
        answer: OnReady,
        now_ms: int,
        later: Later | None = None,
    ) -> None:
        self._fetches = fetches
        self._answer = answer
        self._later = later
        self._generation = fetches.reader.partitions.generation
        self._refused: frozenset[PartitionFetch] = frozenset()
        self.context = context
        self.params = params
        self.version = version
        self.listener = listener
        # A follower's fetch tells of every partition that the follower is still there, and a consumer with a rack may
        # be sent elsewhere at any time. Of the others' sessions the idle partitions need not be looked at.
        self.skips_settled = (
            context.session is not None
            and is_consumer(params.replica_id)
            and not (params.rack and fetches.reader.select_replica)
        )
        self.plan = FetchPlan([], [])
        self.answers: list[Answer] = []
        self.size = 0  # of the records
        self.operation: DelayedFetch | None = None  # what it waits, or has waited, as
        self.received_ms = now_ms
        self.parked_ms: int | None = None
        self.ready_ms: int | None = None
        self.reason: Reason | None = None
        self.woken_by: Hashable | None = None

    @property
    def reader(self) -> PartitionReader:
        return self._fetches.reader

    @property
    def authorizer(self) -> FetchAuthorizer | None:
        return self._fetches.authorizer

    # On its way

    def begin(self, client: object, isolation_level: int, now_ms: int) -> Steps[None]:
        fetches, context = self._fetches, self.context
        self.plan = plan = yield from plan_fetch(
            context,
            fetches.image(),
            fetches.reader.partitions,
            fetches.purgatory,
            is_follower=self.params.is_follower,
            client=client,
            authorizer=fetches.authorizer,
            skips_settled=self.skips_settled,
        )
        if plan.refused:
            self._refused = frozenset(fetch for fetch, _ in plan.refused)
        if len(plan.refused) == len(context.partitions):
            yield from self._ready(Reason.NOTHING_ASKED, now_ms)
            return
        check_level(isolation_level)
        result = yield from self._read(plan.reads, now_ms, notes_progress=True)
        for key in result.moved:
            fetches.purgatory.check(key, now_ms)
        reason = self._reason_to_answer(result)
        if reason is not None:
            yield from self._ready(reason, now_ms)
            return
        self.parked_ms = now_ms
        self.operation = DelayedFetch(self, now_ms + self.params.max_wait_ms)
        session = context.session
        keys: Iterable[Hashable] = [fetch.key for fetch in plan.reads] if session is None else (session,)
        fetches.purgatory.try_complete_or_watch(self.operation, keys, now_ms)

    def _read(self, reads: list[PartitionFetch], now_ms: int, *, notes_progress: bool) -> Steps[ReadResult]:
        result = yield from self._fetches.reader.read_partitions(
            reads,
            self.params,
            self._fetches.image(),
            self.listener,
            now_ms,
            generation=self._generation,
            notes_progress=notes_progress,
        )
        self.answers = result.answers
        self.size = result.size
        return result

    def _reason_to_answer(self, result: ReadResult) -> Reason | None:
        if self.params.max_wait_ms <= 0:
            return Reason.NO_WAIT
        if result.size >= self.params.min_bytes:
            return Reason.ENOUGH
        if result.has_error:
            return Reason.ERROR
        if result.has_diverging:
            return Reason.DIVERGING
        if result.has_preferred:
            return Reason.PREFERRED
        if result.has_watermark:
            return Reason.WATERMARK
        return None

    def woken(self, reason: Reason, by: Hashable | None, now_ms: int) -> None:
        """It has waited long enough, or there is enough to answer: read again."""
        self.woken_by = by
        steps = self._read_again(reason, now_ms)
        if self._later is not None and len(self.context.partitions) > PARTITIONS_AT_ONCE:
            self._later(steps, now_ms)
        else:
            run_steps(steps, now_ms)

    def _read_again(self, reason: Reason, now_ms: int) -> Steps[None]:
        if self.context.is_current:
            if self._generation != self.reader.partitions.generation:
                self.find_again()
            reads = self.all_reads()
            reads = unsettled(reads) if self.skips_settled else list(reads)
            yield from self._read(reads, now_ms, notes_progress=False)
        yield from self._ready(reason, now_ms)

    def find_again(self) -> None:
        """What is hosted may be another since its partitions were found."""
        self._generation = self.reader.partitions.generation
        for fetch in self.all_reads():
            fetch.partition = self.reader.partitions.get(fetch.key)
            fetch.is_settled = False

    def _ready(self, reason: Reason, now_ms: int) -> Steps[None]:
        self.reason = reason
        self.ready_ms = now_ms
        steps = self._answer(self, now_ms)
        if steps is not None:
            yield from steps

    # What a waiting fetch looks at

    def all_reads(self) -> Iterable[PartitionFetch]:
        session = self.context.session
        if session is None:
            return self.plan.reads
        fetches = session.partitions.values()
        return [fetch for fetch in fetches if fetch not in self._refused] if self._refused else fetches

    def partition_of(self, key: Hashable | None) -> PartitionFetch | None:
        """The session's partition with this key."""
        session = self.context.session
        if session is None or key is None:
            return None
        found = session.linked.get(key)  # type: ignore[call-overload]
        return None if found in self._refused else found

    # Ready

    def make_answer(self, now_ms: int) -> Steps[FetchAnswer]:
        """Return the response, and pause now and then. The client's session counts it as sent from now on."""
        fetches, params = self._fetches, self.params
        answers = yield from self._all_answers()
        partitions, image = self.reader.partitions, fetches.image()
        nodes = yield from adapt_errors(answers, self.version, partitions, image, self.listener)
        told = yield from self.context.tell(answers, now_ms)
        answer = yield from build_answer(told, () if params.is_follower else nodes.values())
        if params.is_follower and (quota := self.reader.quota) is not None:
            sent = sum(
                len(answer.records)
                for fetch, answer in self.answers
                if quota.is_throttled(fetch.key, params.replica_id)
            )
            quota.record(sent, now_ms)
        return answer

    @property
    def needs_conversion(self) -> bool:
        """True if the client's version cannot read stored batches."""
        return self.version < FIRST_UNCONVERTED_VERSION

    def conversions(self, answer: FetchAnswer) -> list[Callable[[], PartitionAnswer]]:
        """Return what converts each partition of a response that has stored batches, in its order. These functions may
        take long and may run on any thread."""
        parts = [part for _, _, partitions in answer.topics for part in partitions]
        asked = [fetch for fetch, _ in self.answers] + [fetch for fetch, _ in self.plan.refused]
        return [partial(converted, fetch, part, self.version) for fetch, part in zip(asked, parts, strict=True)]

    def throttled_answer(self) -> FetchAnswer:
        """Return the response to a client that has to slow down: no partitions, and no change in its session."""
        told = self.context.tell_nothing()
        return FetchAnswer(told.error, told.session_id, [])

    def response_size(self) -> int:
        """Return the size of the response before any conversion, which client quotas count. With many partitions it is
        an estimate."""
        if len(self.answers) + len(self.plan.refused) > PARTITIONS_AT_ONCE:
            return self.size + ANSWER_BYTES * (len(self.answers) + len(self.plan.refused))
        version = max(self.version, FIRST_UNCONVERTED_VERSION)
        answers = run_steps(self._all_answers(), self.received_ms)
        told = self.context.tell_nothing()._replace(answers=self.context.worth_telling(answers))
        answer = run_steps(build_answer(told), self.received_ms)
        # As Kafka counts it: the body and four bytes more, without the tags of a flexible header.
        return sum(map(len, parts_of(answer, version, 0, 0))) - (version in FLAT_VERSIONS)

    def _all_answers(self) -> Steps[list[Answer]]:
        answers = list(self.answers)
        for number, (fetch, code) in enumerate(self.plan.refused, 1):
            if not number % PARTITIONS_A_STEP:
                yield
            answers.append((fetch, refusal(fetch.index, code)))
        return answers


class Fetches:
    def __init__(
        self,
        reader: PartitionReader,
        sessions: FetchSessions,
        purgatory: Purgatory,
        image: Callable[[], MetadataImage],
        *,
        authorizer: FetchAuthorizer | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        """`image`: the metadata as it is now. `authorizer`: None lets everyone fetch everything."""
        self.reader = reader
        self.sessions = sessions
        self.purgatory = purgatory
        self.image = image
        self.authorizer = authorizer
        self.max_bytes = max_bytes

    def start(
        self,
        ask: FetchAsk,
        version: int,
        now_ms: int,
        answer: OnReady,
        **options: Any,
    ) -> Fetch:
        """Begin a fetch without pauses."""
        return run_steps(self.begin(ask, version, now_ms, answer, **options), now_ms)

    def begin(
        self,
        ask: FetchAsk,
        version: int,
        now_ms: int,
        answer: OnReady,
        *,
        client: object = None,
        listener: str = "PLAINTEXT",
        quota_bytes: int = INT_MAX,
        later: Later | None = None,
    ) -> Steps[Fetch]:
        """Begin a fetch, and pause now and then. `answer(fetch, now_ms)` is called once, when it is ready, and may
        return steps. If a fetch of many partitions has waited, `later(steps, now_ms)` reads it again and answers it in
        turns with other requests; None: that is done at once.

        `client` is shown to the authorizer; `quota_bytes` is what the client may fetch without being throttled. A
        KafkaError is about the request as a whole: see `refused_fetch`.
        """
        follower = is_follower(ask.replica_id)
        image, sessions = self.image(), self.sessions
        context = yield from sessions.context_for(ask, version, image, is_follower=follower, now_ms=now_ms)
        max_bytes = self.max_bytes if follower else min(self.max_bytes, quota_bytes)
        params = FetchParams.of(ask, version, max_bytes)
        fetch = Fetch(self, context, params, version, listener, answer, now_ms, later)
        yield from fetch.begin(client, ask.isolation_level, now_ms)
        return fetch
