"""Fetch (key 1), versions 0–18.

Behaviour
    Waits until min_bytes are readable, max_wait_ms passes, or a partition fails. From version 3 on, the first non-empty
    partition always returns at least one batch, even if it is larger than the limits. Records are sent as ranges of
    files and never decompressed. A consumer above its quota gets no records, and its session does not change.
    Followers have no client quota.
Version notes
    2   messages of format 1; for versions 0 to 3, batches are converted to an older format
    4   isolation levels and aborted transactions
    5   log start offset
    7   fetch sessions
    9   leader epochs
    11  the consumer's rack, and the replica that it should read from
    12  diverging epochs, flexible encoding
    13  topic ids instead of names
    15  replica state instead of an id
    16  the address of the leader, if this broker does not lead the partition
    18  the follower's high watermark
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tailrace.broker.handling.long_requests import LongRequests
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.fetch.fetch import PARTITIONS_AT_ONCE, Fetch
from tailrace.fetch.fetches import Fetches
from tailrace.fetch.response import refused_fetch
from tailrace.fetch.session import PARTITIONS_PER_STEP
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps, in_pieces, run_steps
from tailrace.protocol.flat.fetch import AnsweredTopic, FetchAnswer, FetchAsk, PartitionAnswer, parts_of
from tailrace.replication.hosted_partitions import HostedPartitions

_NO_ERROR: Final = ErrorCode.NONE


@dataclass(slots=True, kw_only=True)
class FetchHandler:
    """Handler of Fetch requests. Their body is a `FetchAsk`."""

    fetches: Fetches
    long_requests: LongRequests
    partitions: HostedPartitions
    replies: Replies
    request_work: RequestWork
    throttling: Throttling

    def handle(self, request: Request, now_ms: int) -> Steps[None] | None:
        steps = self._fetch(request, now_ms)
        if self.fetches.sessions.partitions_in(request.body) > PARTITIONS_AT_ONCE:
            return steps
        for _ in steps:
            pass
        return None

    def _fetch(self, request: Request, now_ms: int) -> Steps[None]:
        ask: FetchAsk = request.body
        context = request.context
        response = _Response(self, request.without_body())
        try:
            fetch = yield from self.fetches.begin(
                ask,
                request.version,
                now_ms,
                response.make,
                client=context,
                listener=context.listener,
                quota_bytes=self.throttling.fetch_bytes_max(request),
                later=response.resume,
            )
        except KafkaError as error:
            answer = yield from refused_fetch(ask, request.version, error.code)
            yield from response.refuse(answer, now_ms)
            return
        if fetch.operation is not None and fetch.operation.is_waiting:
            self.replies.parked(context, fetch.operation, request.client_id)


handle = FetchHandler


class _Response:
    """The response to one Fetch request, made when the fetch is ready."""

    __slots__ = ("_is_follower", "_request", "_services")

    def __init__(self, services: FetchHandler, request: Request) -> None:
        self._services = services
        self._request = request
        self._is_follower = False

    def resume(self, steps: Steps[None], now_ms: int) -> None:
        """Read again and respond, in turns with other requests."""
        self._services.long_requests.start(self._request, steps, now_ms)

    def refuse(self, answer: FetchAnswer, now_ms: int) -> Steps[None]:
        """Send the refusal of the whole request."""
        throttle_ms = (
            self._services.throttling.of_request(self._request, now_ms) if self._services.throttling.is_on else 0
        )
        yield from self._send(answer, now_ms, throttle_ms)

    def make(self, fetch: Fetch, now_ms: int) -> Steps[None]:
        """Send the response, without records if the client is above its quota."""
        params = fetch.params
        self._is_follower = params.is_follower
        if self._services.throttling.is_on and not params.is_follower:
            throttle_ms = self._services.throttling.of_fetch(self._request, fetch.response_size(), now_ms)
            if throttle_ms:
                yield from self._send(fetch.throttled_answer(), now_ms, throttle_ms)
                return
        answer = yield from fetch.make_answer(now_ms)
        if params.needs_conversion and (conversions := fetch.conversions(answer)):
            self._services.request_work.start(self._request, conversions, partial(self._converted, answer))
            return
        yield from self._send(answer, now_ms)

    def _converted(self, answer: FetchAnswer, converted: list[PartitionAnswer], now_ms: int) -> None:
        left = iter(converted)
        topics = [(name, topic_id, [next(left) for _ in parts]) for name, topic_id, parts in answer.topics]
        run_steps(self._send(answer._replace(topics=topics), now_ms), now_ms)

    def _send(self, answer: FetchAnswer, now_ms: int, throttle_ms: int = 0) -> Steps[None]:
        """Count error codes and bytes, and send the response."""
        request = self._request
        self._services.replies.errors_of(request.api_key)[answer.error_code] += 1
        if len(answer.topics) > PARTITIONS_PER_STEP:
            yield from in_pieces(self._count, answer.topics, PARTITIONS_PER_STEP)
        else:
            self._count(answer.topics)
        encode = partial(parts_of, answer, request.version, request.correlation_id, throttle_ms)
        self._services.replies.answer_encoded(request, encode, now_ms, throttle_ms)

    def _count(self, topics: Sequence[AnsweredTopic]) -> None:
        """Count error codes and the bytes of records."""
        codes, traffic = self._services.replies.errors_of(self._request.api_key), self._services.partitions.traffic
        for name, _, parts in topics:
            size = failed = 0
            for part in parts:
                size += len(part.records)
                if part.error_code:
                    codes[part.error_code] += 1
                    failed += 1
            codes[_NO_ERROR] += len(parts) - failed
            if size and (counts := traffic.get(name)) is not None:
                if self._is_follower:
                    counts.replication_bytes_out += size
                else:
                    counts.bytes_out += size
