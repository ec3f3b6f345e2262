"""Fetch (key 1), versions 0–18.

Behaviour
    Waits until min_bytes are readable, max_wait_ms passes, or a partition fails. The first non-empty partition always
    returns one batch, however large (from version 3 on). Records are sent as ranges of files, never unpacked.
    A consumer that is over its quota gets no records and its session stays as it was; a follower has no client quota.
Version notes
    2   messages of format 1; versions 0 to 3 get batches converted to the format they know
    4   isolation levels and aborted transactions
    5   log start offset
    7   fetch sessions
    9   leader epochs
    11  a consumer's rack, and the replica it should read from
    12  diverging epochs, flexible encoding
    13  topic ids instead of names
    15  replica state instead of an id
    16  where the leader is, when it is not here
    18  the follower's high watermark
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tailrace.broker.handling.long_requests import LongRequests
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.request_context import Request
from tailrace.fetch.context import FetchContext
from tailrace.fetch.fetch import PARTITIONS_AT_ONCE, Fetch, Reason
from tailrace.fetch.fetch_plan import FetchParams
from tailrace.fetch.fetches import Fetches
from tailrace.fetch.response import refused_fetch
from tailrace.fetch.session import PARTITIONS_A_STEP
from tailrace.model.errors import KafkaError
from tailrace.model.steps import Steps, run_steps
from tailrace.protocol.flat.fetch import FetchAnswer, ask_of, message_of
from tailrace.protocol.messages import FetchResponse
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.topic_traffic import TopicTraffic


def handle(
    request: Request,
    now_ms: int,
    *,
    fetches: Fetches,
    long_requests: LongRequests,
    partitions: HostedPartitions,
    replies: Replies,
    request_work: RequestWork,
    throttling: Throttling,
) -> Steps[None] | None:
    steps = _fetch(
        request,
        now_ms,
        fetches=fetches,
        long_requests=long_requests,
        partitions=partitions,
        replies=replies,
        request_work=request_work,
        throttling=throttling,
    )
    if fetches.sessions.partitions_in(ask_of(request.body, request.version)) > PARTITIONS_AT_ONCE:
        return steps
    return run_steps(steps, now_ms)


def _fetch(
    request: Request,
    now_ms: int,
    *,
    fetches: Fetches,
    long_requests: LongRequests,
    partitions: HostedPartitions,
    replies: Replies,
    request_work: RequestWork,
    throttling: Throttling,
) -> Steps[None]:
    waiting = request.without_body()

    def later(steps: Steps[None], now_ms: int) -> None:
        long_requests.start(waiting, steps, now_ms)

    try:
        fetch = yield from fetches.begin(
            ask_of(request.body, request.version),
            request.version,
            now_ms,
            _answer_to(
                waiting, partitions=partitions, replies=replies, request_work=request_work, throttling=throttling
            ),
            client=request.context,
            listener=request.context.listener,
            quota_bytes=throttling.fetch_bytes_max(request),
            later=later,
        )
    except KafkaError as error:
        replies.answer(
            request,
            message_of(refused_fetch(ask_of(request.body, request.version), request.version, error.code)),
            now_ms,
        )
        return
    if fetch.operation is not None and fetch.operation.is_waiting:
        replies.parked(request.context, fetch.operation)


def go_on(
    request: Request,
    context: FetchContext,
    params: FetchParams,
    now_ms: int,
    *,
    fetches: Fetches,
    partitions: HostedPartitions,
    replies: Replies,
    request_work: RequestWork,
    throttling: Throttling,
) -> None:
    """Answer a fetch that has waited elsewhere with what can be read now."""
    listener = request.context.listener
    answer = _answer_to(
        request, partitions=partitions, replies=replies, request_work=request_work, throttling=throttling
    )
    fetch = Fetch(fetches.services, context, params, request.version, listener, answer, now_ms)
    fetch.find_again()
    fetch.woken(Reason.DEADLINE, None, now_ms)


def _answer_to(
    waiting: Request,
    *,
    partitions: HostedPartitions,
    replies: Replies,
    request_work: RequestWork,
    throttling: Throttling,
) -> Callable[[Fetch, int], Steps[None]]:

    def answer(fetch: Fetch, now_ms: int) -> Steps[None]:
        if throttling.is_on and not fetch.params.is_follower:
            throttle_ms = throttling.of_fetch(waiting, fetch.response_size(), now_ms)
            if throttle_ms:
                replies.reply(waiting, message_of(fetch.throttled_answer()), now_ms, throttle_ms)
                return
        made = yield from fetch.make_answer(now_ms)
        if fetch.needs_conversion and (conversions := fetch.conversions(made)):
            request_work.start(waiting, conversions, partial(converted, made, fetch.params.is_follower))
        else:
            yield from send(made, now_ms, is_follower=fetch.params.is_follower)

    def converted(made: FetchAnswer, is_follower: bool, parts: list[Any], now_ms: int) -> None:
        parts_left = iter(parts)
        topics = [(name, one, [next(parts_left) for _ in told]) for name, one, told in made.topics]
        run_steps(send(made._replace(topics=topics), now_ms, is_follower=is_follower), now_ms)

    def send(made: FetchAnswer, now_ms: int, *, is_follower: bool) -> Steps[None]:
        response = message_of(made)
        yield from _count_bytes(response, partitions.traffic, is_follower=is_follower)
        replies.reply(waiting, response, now_ms)

    return answer


def _count_bytes(response: FetchResponse, traffic: dict[str, TopicTraffic], *, is_follower: bool) -> Steps[None]:
    for number, topic in enumerate(response.responses, 1):
        if not number % PARTITIONS_A_STEP:
            yield
        size = sum([len(one.records) for one in topic.partitions if one.records])
        if size and (counts := traffic.get(topic.topic)) is not None:
            if is_follower:
                counts.replication_bytes_out += size
            else:
                counts.bytes_out += size
