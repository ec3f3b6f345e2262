"""Explain a fetch: the steps of one live Fetch request, as data.

`explain_fetch` is called when a fetch is ready and before its response is taken. It returns the decisions of the fetch:
session, refusals, limits, the time it waited and the event that woke it. It repeats each read with
`log/inspect/explain.py`, which records index probes, batch headers and the slice. An ordinary fetch stores nothing for
this and has no extra cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

from tailrace.fetch.byte_budget import ByteBudget
from tailrace.fetch.context import SessionErrorContext
from tailrace.fetch.fetch import Fetch, Reason
from tailrace.fetch.isolation import describe_replica
from tailrace.fetch.session import PartitionFetch
from tailrace.log.inspect.explain import ReadExplanation, explain_offset
from tailrace.log.reading.log_read import LogRead
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.protocol.flat.fetch import PartitionAnswer
from tailrace.tiers.reading.remote_reader import RemoteWalk


@dataclass(frozen=True, slots=True)
class SessionWalk:
    """The session of the request and its partitions."""

    kind: str  # sessionless, full, incremental, session error
    id: int  # 0: no session, or not yet
    epoch: int  # the epoch of the client's next request
    partitions: int
    idle: int  # of these, skipped because nothing has changed since the client's last response
    error: ErrorCode | None = None


@dataclass(frozen=True, slots=True)
class BudgetWalk:
    """The bytes that a partition may return when its turn comes."""

    left: int  # of the response's max_bytes
    partition_max_bytes: int
    share: int
    at_least_one: bool  # one batch is returned even if it is larger
    taken: int


@dataclass(frozen=True, slots=True)
class Refusal:
    topic: str | None
    partition: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class PartitionWalk:
    topic: str | None
    partition: int
    fetch_offset: Offset
    current_leader_epoch: LeaderEpoch
    role: str | None  # leader or follower
    leader_epoch: LeaderEpoch | None
    budget: BudgetWalk
    error: ErrorCode
    diverging_epoch: tuple[LeaderEpoch, Offset] | None
    preferred_read_replica: int | None
    aborted: list[tuple[int, Offset]] | None  # producer id and first offset
    is_in_response: bool  # True if the response contains it; an incremental response leaves out unchanged partitions
    read: ReadExplanation | None
    remote: RemoteWalk | None = None  # the offset is only in the remote store


@dataclass(frozen=True, slots=True)
class FetchWalk:
    version: int
    fetcher: str  # a consumer, a follower or a debugger
    isolation: Isolation
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    session: SessionWalk
    authorizer: str | None  # the authorizer that decided on the topics; None: authorization is off
    refused: list[Refusal]
    waited_ms: int | None  # None: the fetch never waited
    woken_by: str | None
    reason: Reason
    size: int
    partitions: list[PartitionWalk] = field(default_factory=list)


def explain_fetch(fetch: Fetch) -> FetchWalk:
    """Return the steps of a fetch that is ready."""
    assert fetch.reason is not None, "the fetch is still waiting"
    assert fetch.ready_ms is not None
    params = fetch.params
    sent = {id(answer) for _, answer in fetch.context.changed_answers(fetch.answers)}
    budget = ByteBudget(params.max_bytes, is_hard=params.has_hard_limit)
    return FetchWalk(
        version=fetch.version,
        fetcher=describe_replica(params.replica_id),
        isolation=params.isolation,
        min_bytes=params.min_bytes,
        max_bytes=params.max_bytes,
        max_wait_ms=params.max_wait_ms,
        session=_session(fetch),
        authorizer=None if fetch.authorizer is None else type(fetch.authorizer).__name__,
        refused=[Refusal(one.topic, one.index, code) for one, code in fetch.plan.refused],
        waited_ms=None if fetch.parked_ms is None else fetch.ready_ms - fetch.parked_ms,
        woken_by=None if fetch.woken_by is None else str(fetch.woken_by),
        reason=fetch.reason,
        size=fetch.size,
        partitions=[_partition(fetch, one, answer, budget, id(answer) in sent) for one, answer in fetch.answers],
    )


def _session(fetch: Fetch) -> SessionWalk:
    context = fetch.context
    session = context.session
    total = len(context.partitions)
    idle = total - len(fetch.answers) - len(fetch.plan.refused) if fetch.skips_idle else 0
    error = context.error if isinstance(context, SessionErrorContext) else None
    return SessionWalk(
        context.kind, session.id if session else 0, session.epoch if session else 0, total, max(idle, 0), error
    )


def _partition(
    fetch: Fetch, one: PartitionFetch, answer: PartitionAnswer, budget: ByteBudget, is_in_response: bool
) -> PartitionWalk:
    partition = fetch.reader.partitions.get(one.key)
    taken = len(answer.records) if answer.records else 0
    share = BudgetWalk(budget.left, one.max_bytes, budget.share(one.max_bytes), budget.at_least_one, taken)
    budget.take(taken)
    remote = None
    if (
        partition is not None
        and fetch.reader.remote is not None
        and one.fetch_offset < partition.log.local_start_offset
    ):
        remote = fetch.reader.remote.explain(one.key, one.fetch_offset)
    is_read = partition is not None and remote is None and not answer.error_code and answer.diverging is None
    return PartitionWalk(
        topic=one.topic,
        partition=one.index,
        fetch_offset=one.fetch_offset,
        current_leader_epoch=one.current_leader_epoch,
        role=None if partition is None else "leader" if partition.is_leader else "follower",
        leader_epoch=None if partition is None else partition.leader_epoch,
        budget=share,
        error=ErrorCode(answer.error_code),
        diverging_epoch=answer.diverging,
        preferred_read_replica=None if answer.preferred_replica < 0 else answer.preferred_replica,
        aborted=None if answer.aborted is None else list(answer.aborted),
        is_in_response=is_in_response,
        read=explain_offset(partition.log, one.fetch_offset, max(share.share, 0), fetch.params.isolation)
        if is_read and partition is not None and answer.preferred_replica < 0
        else None,
        remote=remote,
    )


def as_plain(value: Any) -> Any:
    """Return a walk as dicts, lists, strings and numbers, for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        # The result of a read holds the open file. Its slice has its own field.
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
        return {name: as_plain(part) for name, part in parts.items() if not isinstance(part, LogRead)}
    if isinstance(value, Enum):
        return value.name if isinstance(value, ErrorCode) else value.value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return as_plain(value._asdict())
    if isinstance(value, Mapping):
        return {name: as_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    return value
