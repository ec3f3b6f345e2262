"""Fetch: one Fetch request from its plan to its response.

    begin ─► plan ─► read ─► ready, or `park` until `woken` ─► read again ─► ready ─► response

`fetches.py` makes a Fetch and parks it as a `DelayedFetch`. When it is ready, the caller calls `make_answer()`, which
updates the session. If the client exceeds its quota, the caller calls `throttled_answer()`, which does not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

from tailrace.fetch.context import Answer, FetchContext, Includes
from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, converted
from tailrace.fetch.fetch_plan import FetchAuthorizer, FetchParams, FetchPlan, active_partitions
from tailrace.fetch.isolation import check_level, is_consumer
from tailrace.fetch.read import READS_PER_STEP, PartitionReader, ReadResult
from tailrace.fetch.response import AnswerBuilder, refusal
from tailrace.fetch.session import PARTITIONS_PER_STEP, PartitionFetch
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.steps import Steps, in_pieces, run_steps
from tailrace.protocol.flat.fetch import FLAT_VERSIONS, FetchAnswer, PartitionAnswer, parts_of
from tailrace.tiers.reading.remote_reader import RemoteAnswer, RemotePart
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

PARTITIONS_AT_ONCE = 1_024  # takes about ten milliseconds
ANSWER_BYTES = 64  # approximate size of a partition without its records
Later: TypeAlias = Callable[[Steps[None], int], None]
OnReady: TypeAlias = "Callable[[Fetch, int], Steps[None] | None]"


class Reason(Enum):
    """The reason for the response to a fetch. `delayed_fetch.py` explains the cases A to I."""

    NO_WAIT = "max_wait_ms is 0"
    NOTHING_READABLE = "no partition can be read"
    ENOUGH = "min_bytes are available"
    ERROR = "a partition has an error"
    DIVERGING = "a partition's epoch diverges"
    PREFERRED = "a partition has a preferred replica elsewhere"
    WATERMARK = "a follower that serves consumers lacks the high watermark"
    NOT_LEADER = "Case A: this broker is no longer the leader"
    NO_REPLICA = "Case B: the replica is no longer on this broker"
    UNKNOWN = "Case C: the partition no longer exists"
    OFFLINE = "Case D: the log directory is offline"
    FENCED = "Case E: the leader epoch is fenced"
    OTHER_SEGMENT = "Case F: the bound is in another segment, or before the offset"
    ENOUGH_NOW = "Case G: min_bytes have arrived"
    DIVERGING_NOW = "Case H: the epoch diverges now"
    WATERMARK_NOW = "Case I: the high watermark has advanced"
    DEADLINE = "max_wait_ms has passed"
    REMOTE = "the remote store was read"


_NO_WAIT: Final = Reason.NO_WAIT
_ENOUGH: Final = Reason.ENOUGH
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


@dataclass(frozen=True, slots=True)
class FetchServices:
    """The parts of the broker that every fetch uses. Without an authorizer every client may fetch every topic."""

    reader: PartitionReader
    purgatory: Purgatory
    image: Callable[[], MetadataImage]  # the current metadata
    authorizer: FetchAuthorizer | None = None


class Fetch:
    """One Fetch request in progress."""

    __slots__ = (
        "_answer",
        "_generation",
        "_later",
        "_refused",
        "_services",
        "context",
        "listener",
        "operation",
        "params",
        "parked_ms",
        "plan",
        "ready_ms",
        "reason",
        "received_ms",
        "result",
        "skips_idle",
        "version",
        "woken_by",
    )

    plan: FetchPlan  # set by `begin`

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
        reader = services.reader
        self._generation = reader.partitions.generation
        self._refused: frozenset[PartitionFetch] = frozenset()
        session = context.session
        self.context = context
        self.params = params
        self.version = version
        self.listener = listener
        # A follower's fetch confirms for every partition that the follower is alive. A consumer with a rack may be
        # redirected at any time. A negative limit is an error of the first partition only. In all other sessions idle
        # partitions are skipped.
        self.skips_idle = (
            session is not None
            and is_consumer(params.replica_id)
            and not (params.rack and reader.select_replica)
            and params.max_bytes >= 0
        )
        self.result: ReadResult | None = None  # of the last read
        self.operation: DelayedOperation | None = None  # the operation as which the fetch waits now
        self.received_ms = now_ms
        self.parked_ms: int | None = None
        self.ready_ms: int | None = None
        self.reason: Reason | None = None
        self.woken_by: Hashable | None = None

    @property
    def reader(self) -> PartitionReader:
        return self._services.reader

    @property
    def answers(self) -> list[Answer]:
        """Return the answers of the partitions that were read."""
        return [] if self.result is None else self.result.answers

    @property
    def size(self) -> int:
        """Return the size of the records."""
        return 0 if self.result is None else self.result.size

    @property
    def authorizer(self) -> FetchAuthorizer | None:
        return self._services.authorizer

    # In progress

    def begin(self, client: object, isolation_level: int, image: MetadataImage, now_ms: int) -> Steps[bool]:
        """Plan and read. Return True if the fetch is answered, False if it has to wait."""
        services, context = self._services, self.context
        plan = FetchPlan(
            context.session, image, services.reader.partitions, services.purgatory, self.params.is_follower
        )
        self.plan = plan
        partitions = context.partitions
        wanted = partitions.values()
        authorizer = services.authorizer
        if authorizer is None or (yield from plan.authorize(wanted, client, authorizer)):
            steps = plan.take(active_partitions(wanted) if self.skips_idle else list(wanted))
            if steps is not None:
                yield from steps
                image = services.image()
            plan.end()
        if plan.refused:
            self._refused = frozenset(fetch for fetch, _ in plan.refused)
        if len(plan.refused) == len(partitions):
            steps = self._ready(Reason.NOTHING_READABLE, now_ms)
        else:
            check_level(isolation_level)
            result = ReadResult(self.params)
            steps = self._read(plan.reads, result, image, now_ms, True)
            if steps is not None:
                yield from steps
            for key in result.moved:
                services.purgatory.check(key, now_ms)
            if result.remote:
                return False
            reason = self._reason_to_answer(result)
            if reason is None:
                return False
            steps = self._ready(reason, now_ms)
        if steps is not None:
            yield from steps
        return True

    def park(self, operation: DelayedOperation, now_ms: int) -> None:
        """Wait as an operation in the purgatory."""
        self.operation = operation
        self.parked_ms = now_ms

    def wait_for_remote(self, now_ms: int) -> DelayedOperation | None:
        """Begin the reads from the remote store, if it alone has the wanted records of some partition.

        Return the operation that waits.
        """
        result, remote = self.result, self.reader.remote
        if result is None or not result.remote or remote is None:
            return None
        return remote.begin(result.remote, self._remote_read, now_ms)

    def _remote_read(self, answers: Sequence[tuple[RemotePart, RemoteAnswer | None]], now_ms: int) -> None:
        """Put the records from the remote store into the answers, and answer."""
        self.operation = None
        result = self.result
        assert result is not None
        for part, found in answers:
            if found is not None:
                result.put_remote(part, found)
        steps = self._ready(Reason.REMOTE, now_ms)
        if steps is not None:
            run_steps(steps, now_ms)

    def keys(self) -> Iterable[Hashable]:
        """Return the keys of the purgatory under which the fetch waits."""
        if self.result is not None and self.result.remote:
            return [part.key for part in self.result.remote]
        session = self.context.session
        return [fetch.key for fetch in self.plan.reads] if session is None else (session,)

    def _read(
        self, reads: list[PartitionFetch], result: ReadResult, image: MetadataImage, now_ms: int, notes_progress: bool
    ) -> Steps[None] | None:
        """Read partitions into a result. `notes_progress` is True if a follower's position is to be recorded. It is
        False when a fetch that has waited is read again."""
        self.result = result
        given = result, self.params, image, self.listener, now_ms, self._generation, notes_progress
        reader = self._services.reader
        if len(reads) > READS_PER_STEP:
            return in_pieces(lambda some: reader.read(some, *given), reads, READS_PER_STEP)
        reader.read(reads, *given)
        return None

    def _reason_to_answer(self, result: ReadResult) -> Reason | None:
        if self.params.max_wait_ms <= 0:
            return _NO_WAIT
        if result.size >= self.params.min_bytes:
            return _ENOUGH
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
        """Read the partitions again and answer, because the wait has ended."""
        # The fetch and its operation refer to each other; without this only the garbage collector frees them.
        self.operation = None
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
            reads = active_partitions(reads) if self.skips_idle else list(reads)
            steps = self._read(reads, ReadResult(self.params), self._services.image(), now_ms, False)
            if steps is not None:
                yield from steps
        steps = self._ready(reason, now_ms)
        if steps is not None:
            yield from steps

    def find_again(self) -> None:
        """Look up the partitions again if the hosted partitions have changed."""
        self._generation = self.reader.partitions.generation
        for fetch in self.all_reads():
            fetch.find_again(self.reader.partitions)

    def _ready(self, reason: Reason, now_ms: int) -> Steps[None] | None:
        self.reason = reason
        self.ready_ms = now_ms
        return self._answer(self, now_ms)

    # State that a waiting fetch looks at

    def all_reads(self) -> Iterable[PartitionFetch]:
        session = self.context.session
        if session is None:
            return self.plan.reads
        fetches = session.partitions.values()
        return [fetch for fetch in fetches if fetch not in self._refused] if self._refused else fetches

    def partition_of(self, key: Hashable | None) -> PartitionFetch | None:
        """Return the session's partition with this key."""
        session = self.context.session
        if session is None or key is None:
            return None
        found = session.linked.get(key)  # type: ignore[call-overload]
        return None if found in self._refused else found

    # Ready

    def make_answer(self, now_ms: int) -> Steps[FetchAnswer]:
        """Return the response, with pauses for other requests. The session then counts it as sent."""
        params, answers, refused = self.params, self.answers, self.plan.refused
        error, session_id, has_partitions, includes = self.context.begin_response(answers, refused, now_ms)
        builder = self._builder(self.version, includes)
        if has_partitions:
            if len(answers) + len(refused) <= PARTITIONS_PER_STEP:
                builder.add(answers)
                if refused:
                    builder.add_refused(refused)
            else:
                yield from in_pieces(builder.add, answers, PARTITIONS_PER_STEP)
                yield
                yield from in_pieces(builder.add_refused, refused, PARTITIONS_PER_STEP)
        if params.is_follower:
            self._count_throttled(now_ms)
        nodes = tuple(builder.nodes.values()) if builder.nodes and not params.is_follower else ()
        answer: FetchAnswer = _new_tuple(FetchAnswer, (error, session_id, builder.topics, nodes))
        return answer

    def _builder(self, version: int | None, includes: Includes | None) -> AnswerBuilder:
        services = self._services
        return AnswerBuilder(version, includes, services.reader.partitions, services.image, self.listener)

    def _count_throttled(self, now_ms: int) -> None:
        """Count the bytes of throttled partitions that a follower receives."""
        quota = self.reader.quota
        if quota is not None:
            replica_id = self.params.replica_id
            sent = [len(one.records) for fetch, one in self.answers if quota.is_throttled(fetch.key, replica_id)]
            quota.record(sum(sent), now_ms)

    def conversions(self, answer: FetchAnswer) -> list[Callable[[], PartitionAnswer]]:
        """Return a function for each partition with stored batches, in order, that converts its records. These
        functions may take long and may run on any thread."""
        parts = [part for _, _, partitions in answer.topics for part in partitions]
        asked = [fetch for fetch, _ in self.answers] + [fetch for fetch, _ in self.plan.refused]
        return [partial(converted, fetch, part, self.version) for fetch, part in zip(asked, parts, strict=True)]

    def throttled_answer(self) -> FetchAnswer:
        """Return the response to a throttled client. It has no partitions and does not change the session."""
        head = self.context.begin_empty_response()
        return FetchAnswer(head.error, head.session_id, [])

    def response_size(self) -> int:
        """Return the size of the response before any conversion, for client quotas. For many partitions it is an
        estimate."""
        if len(self.answers) + len(self.plan.refused) > PARTITIONS_AT_ONCE:
            return self.size + ANSWER_BYTES * (len(self.answers) + len(self.plan.refused))
        version = max(self.version, FIRST_UNCONVERTED_VERSION)
        head, builder = self.context.begin_empty_response(), self._builder(None, None)
        refused = [(fetch, refusal(fetch.index, code)) for fetch, code in self.plan.refused]
        builder.add(self.context.changed_answers([*self.answers, *refused]))
        answer = FetchAnswer(head.error, head.session_id, builder.topics)
        # Kafka counts the body plus four bytes, without the tags of a flexible header.
        return sum(map(len, parts_of(answer, version, 0, 0))) - (version in FLAT_VERSIONS)
