"""Fetch: one Fetch request on its way from its plan to its answer.

    begin ─► plan ─► read ─► ready, or `park` until `woken` ─► read again ─► ready ─► response

`fetches.py` makes a Fetch and parks it as a `DelayedFetch`. When it is ready, the caller asks for `make_answer()`,
which updates the session, or, if the client is over its quota, for `throttled_answer()`, which does not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TypeAlias

from tailrace.fetch.context import Answer, FetchContext
from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, converted
from tailrace.fetch.fetch_plan import FetchAuthorizer, FetchParams, FetchPlan, plan_fetch, unsettled
from tailrace.fetch.isolation import check_level, is_consumer
from tailrace.fetch.read import PartitionReader, ReadResult
from tailrace.fetch.response import adapt_errors, build_answer, refusal
from tailrace.fetch.session import PARTITIONS_A_STEP, PartitionFetch
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.steps import Steps, run_steps
from tailrace.protocol.flat.fetch import FLAT_VERSIONS, FetchAnswer, PartitionAnswer, parts_of
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

PARTITIONS_AT_ONCE = 1_024  # some ten milliseconds
ANSWER_BYTES = 64  # of a partition without its records, roughly
Later: TypeAlias = Callable[[Steps[None], int], None]
OnReady: TypeAlias = "Callable[[Fetch, int], Steps[None] | None]"


class Reason(Enum):
    """Why a fetch is answered. The cases A to I are those of `delayed_fetch.py`."""

    NO_WAIT = "no wait was asked for"
    NOTHING_ASKED = "nothing can be read"
    ENOUGH = "there are enough bytes"
    ERROR = "a partition has an error"
    DIVERGING = "a partition's epoch diverges"
    PREFERRED = "a partition is better read elsewhere"
    WATERMARK = "a follower's readers wait for its high watermark"
    NOT_LEADER = "Case A: no longer the leader"
    NO_REPLICA = "Case B: no longer a replica"
    UNKNOWN = "Case C: not known any more"
    OFFLINE = "Case D: offline"
    FENCED = "Case E: the leader epoch is fenced"
    OTHER_SEGMENT = "Case F: the bound is in another segment, or before the offset"
    ENOUGH_NOW = "Case G: enough bytes have come"
    DIVERGING_NOW = "Case H: the epoch has come to diverge"
    WATERMARK_NOW = "Case I: the high watermark has moved"
    DEADLINE = "the time is over"


@dataclass(slots=True)
class FetchServices:
    """The parts of the broker that every fetch uses. Without an authorizer every client may fetch every topic."""

    reader: PartitionReader
    purgatory: Purgatory
    image: Callable[[], MetadataImage]  # the current metadata
    authorizer: FetchAuthorizer | None = None


class Fetch:
    """One request on its way."""

    __slots__ = (
        "_answer",
        "_generation",
        "_later",
        "_refused",
        "_services",
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
        services: FetchServices,
        context: FetchContext,
        params: FetchParams,
        version: int,
        listener: str,
        answer: OnReady,
        now_ms: int,
        later: Later | None = None,
    ) -> None:
        self._services = services
        self._answer = answer
        self._later = later
        self._generation = services.reader.partitions.generation
        self._refused: frozenset[PartitionFetch] = frozenset()
        self.context = context
        self.params = params
        self.version = version
        self.listener = listener
        # A follower's fetch confirms for every partition that the follower is alive, and a consumer with a rack may be
        # sent elsewhere at any time. In all other sessions the idle partitions are skipped.
        self.skips_settled = (
            context.session is not None
            and is_consumer(params.replica_id)
            and not (params.rack and services.reader.select_replica)
        )
        self.plan = FetchPlan([], [])
        self.answers: list[Answer] = []
        self.size = 0  # of the records
        self.operation: DelayedOperation | None = None  # what it waits, or has waited, as
        self.received_ms = now_ms
        self.parked_ms: int | None = None
        self.ready_ms: int | None = None
        self.reason: Reason | None = None
        self.woken_by: Hashable | None = None

    @property
    def reader(self) -> PartitionReader:
        return self._services.reader

    @property
    def authorizer(self) -> FetchAuthorizer | None:
        return self._services.authorizer

    # On its way

    def begin(self, client: object, isolation_level: int, now_ms: int) -> Steps[bool]:
        """Plan and read. Return True if the fetch is answered, False if it has to wait."""
        services, context = self._services, self.context
        self.plan = plan = yield from plan_fetch(
            context,
            services.image(),
            services.reader.partitions,
            services.purgatory,
            is_follower=self.params.is_follower,
            client=client,
            authorizer=services.authorizer,
            skips_settled=self.skips_settled,
        )
        if plan.refused:
            self._refused = frozenset(fetch for fetch, _ in plan.refused)
        if len(plan.refused) == len(context.partitions):
            yield from self._ready(Reason.NOTHING_ASKED, now_ms)
            return True
        check_level(isolation_level)
        result = yield from self._read(plan.reads, now_ms, notes_progress=True)
        for key in result.moved:
            services.purgatory.check(key, now_ms)
        reason = self._reason_to_answer(result)
        if reason is not None:
            yield from self._ready(reason, now_ms)
            return True
        return False

    def park(self, operation: DelayedOperation, now_ms: int) -> None:
        """Wait as an operation in the purgatory."""
        self.operation = operation
        self.parked_ms = now_ms

    def keys(self) -> Iterable[Hashable]:
        """Return the keys of the purgatory under which the fetch waits."""
        session = self.context.session
        return [fetch.key for fetch in self.plan.reads] if session is None else (session,)

    def _read(self, reads: list[PartitionFetch], now_ms: int, *, notes_progress: bool) -> Steps[ReadResult]:
        result = yield from self._services.reader.read_partitions(
            reads,
            self.params,
            self._services.image(),
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
        services, params = self._services, self.params
        answers = yield from self._all_answers()
        partitions, image = self.reader.partitions, services.image()
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
