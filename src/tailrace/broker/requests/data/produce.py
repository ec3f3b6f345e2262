"""Produce (key 0), versions 0–13.

Behaviour
    Appends the records of each partition and returns the offset of the first. With acks=0 there is no response, but the
    connection is closed if records were refused. With acks=1 the response is sent after the append. With acks=all it is
    sent when every in-sync replica has the records, or after the timeout.
    Each partition has its own error. But if the length or magic of a partition's first batch is wrong, the whole
    request gets the error, as in Kafka. Invalid acks and internal topics are refused after all other checks.
    Transactional records are appended after the coordinator has confirmed that the partition is part of the
    transaction. The size of a request counts towards producer_byte_rate, also with acks=0.
    Chores check batches that may take long (`request_work.py`). A request with many partitions pauses
    (`long_requests.py`). The records of a round for one partition are written together (`handling/appends.py`).
Version notes
    1   throttle time
    2   append time; messages of format 1
    3   record batches of format 2 only, and a transactional id
    5   log start offset
    7   zstd
    8   errors of single records
    9   flexible encoding
    10  the address of the leader, if this broker does not lead the partition
    11  TRANSACTION_ABORTABLE
    12  the broker adds partitions to the transaction; AddPartitionsToTxn is not needed
    13  topic ids instead of names
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.handling.appends import PARTS_PER_STEP, Appends
from tailrace.broker.handling.long_requests import LongRequests
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.data.produce_checks import check_records, cost_of, limit_record_errors, request_error
from tailrace.broker.requests.data.produce_verification import Refusals, has_transactional_records, verify_produce
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.topics.topic_view import INTERNAL_TOPICS, endpoint_of
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps, run_steps
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.flat.produce import LeaderHint, ProduceAsk, ProducedTopic, parts_of
from tailrace.records.checks.checked_records import (
    LOOP_COST_MAX,
    PLAIN_BYTES_MAX,
    CheckedRecords,
    check_cost,
    plain_cost,
)
from tailrace.records.checks.produce_request import FIRST_VERSION_WITH_ZSTD, has_unknown_codec
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.produce import ProducePart

_ACKS: Final = (-1, 0, 1)
_ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics, as in Kafka
_LEADERS_FROM: Final = first_version_with("ProduceResponse", "node_endpoints")

_WRITE: Final = Operation.WRITE
_TOPIC: Final = AclResource.TOPIC
_NOTHING: Final = ProduceAsk(None, 0, 0, (), 0, -1)
_new_tuple: Final = tuple.__new__  # takes half the time of NamedTuple's constructor

# A topic whose records are being placed: its name, its error or None, and its parts.
_OpenTopic: TypeAlias = tuple[str, ErrorCode | None, list[ProducePart]]
# The indexes of a topic and its partition in the request, and the function that checks the records.
_CostlyRecords: TypeAlias = tuple[tuple[int, int], Callable[[], CheckedRecords]]


@dataclass(slots=True, kw_only=True)
class ProduceHandler:
    """Handler of Produce requests. Their body is a `ProduceAsk`."""

    appends: Appends
    config: BrokerConfig
    controller: Controller
    long_requests: LongRequests
    partitions: HostedPartitions
    permissions: Permissions
    replies: Replies
    request_work: RequestWork
    throttling: Throttling
    transaction_verification: TransactionVerification

    def handle(self, request: Request, now_ms: int) -> Steps[None] | None:
        produce = _Produce(self, request, now_ms)
        self.appends.open(produce)
        if produce.plain_bytes >= 0:
            return produce.append({}, now_ms)
        return produce.paced(self._begin(produce, request, now_ms), now_ms)

    def _begin(self, produce: _Produce, request: Request, now_ms: int) -> Steps[None]:
        """Check the whole request, and append its records, now or later."""
        try:
            is_transactional = yield from has_transactional_records(produce.ask, request.version)
        except KafkaError as error:
            yield from produce.refuse(error.code, now_ms, str(error))
            return
        if is_transactional and not self._may_use_transaction(request):
            yield from produce.refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, now_ms)
        elif request.version < FIRST_VERSION_WITH_ZSTD and produce.has_unknown_codec():
            yield from produce.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
        elif not is_transactional:
            steps = produce.append({}, now_ms)
            if steps is not None:
                yield from steps
        else:
            verified = verify_produce(
                produce.ask,
                request.version,
                produce.append_later,
                now_ms,
                config=self.config,
                controller=self.controller,
                purgatory=self.appends.purgatory,
                transaction_verification=self.transaction_verification,
            )
            yield from produce.verify(verified, now_ms)

    def _may_use_transaction(self, request: Request) -> bool:
        transactional_id = request.body.transactional_id
        return transactional_id is not None and self.permissions.allows(
            request, _WRITE, AclResource.TRANSACTIONAL_ID, transactional_id
        )


handle = ProduceHandler


class _Produce:
    """One Produce request until its response."""

    __slots__ = (
        "_request", "_services", "_topics", "acks", "ask", "context", "deadline_ms", "is_long", "is_ready", "parts",
        "plain_bytes",
    )  # fmt: skip

    def __init__(self, services: ProduceHandler, request: Request, now_ms: int) -> None:
        ask: ProduceAsk = request.body
        self._services = services
        self._request = request.without_body()
        self._topics: list[ProducedTopic] = []
        self.ask = ask
        self.context = request.context
        self.acks = ask.acks
        self.deadline_ms = now_ms + max(ask.timeout_ms, 0)
        self.parts: list[ProducePart] = []
        self.is_long = ask.partition_count > PARTS_PER_STEP
        self.is_ready = False
        self.plain_bytes = ask.plain_bytes

    @property
    def client_id(self) -> str | None:
        return self._request.client_id

    def paced(self, steps: Steps[None], now_ms: int) -> Steps[None] | None:
        """Return the steps if the request has many partitions. Otherwise run them."""
        return steps if self.is_long else run_steps(steps, now_ms)

    def verify(self, verified: Steps[ErrorCode | None], now_ms: int) -> Steps[None]:
        """Verify the transaction, and append the records after that, now or later."""
        refused = yield from verified
        if refused is not None:
            yield from self.refuse(refused, now_ms)
        elif not self.is_long:
            self.ask = self.ask.copied()

    def has_unknown_codec(self) -> bool:
        """Return True if a partition's first batch has an unknown codec. Before zstd, it refuses the whole request."""
        services = self._services
        for topic, parts in self.ask.topics:
            for index, records in parts:
                if records is not None and has_unknown_codec(records):
                    key = TopicPartition(_name_of(topic, self._services.controller.image), index)
                    if services.controller.image.partition(key) is not None and services.permissions.allows_silently(
                        self._request, _WRITE, _TOPIC, key.topic
                    ):
                        return True
        return False

    # Append

    def append_later(self, refusals: Refusals, now_ms: int) -> None:
        """Append the records after the request has waited."""
        steps = self.append(refusals, now_ms)
        if steps is not None:
            self._services.long_requests.start(self._request, steps, now_ms)

    def append(self, refusals: Refusals, now_ms: int) -> Steps[None] | None:
        """Place the records of all partitions. Return steps if the request has many partitions."""
        if self.is_long:
            return self._append_in_steps(refusals, now_ms)
        if not 0 <= self.plain_bytes <= PLAIN_BYTES_MAX:
            costly = [found for found in self._costly(refusals) if found is not None]
            if costly:
                self._check_by_chore(costly, refusals)
                return None
        for topic, parts in self.ask.topics:
            self._place(self._open_topic(topic), parts, refusals, now_ms)
        self._placed()
        self._services.appends.add(self, now_ms)
        return None

    def _append_in_steps(self, refusals: Refusals, now_ms: int) -> Steps[None]:
        costly = []
        for number, found in enumerate(self._costly(refusals), 1):
            if found is not None:
                costly.append(found)
            if not number % PARTS_PER_STEP:
                now_ms = yield
        if costly:
            self._check_by_chore(costly, refusals)
            return
        appends, is_turn_over = self._services.appends, self._services.long_requests.is_turn_over
        number = cost = 0
        for topic, parts in self.ask.topics:
            opened = self._open_topic(topic)
            for part in parts or (None,):
                number += 1
                if part is not None:
                    self._place(opened, (part,), refusals, now_ms)
                    cost += cost_of(part[1])
                if number >= PARTS_PER_STEP or cost > LOOP_COST_MAX or (not number % 16 and is_turn_over()):
                    appends.write_touched(
                        now_ms
                    )  # no records stay placed during a pause, because other requests change logs
                    now_ms = yield
                    number = cost = 0
        appends.write_touched(now_ms)
        self._placed()
        yield from appends.written_in_steps(self, now_ms)

    def _check_by_chore(self, costly: list[_CostlyRecords], refusals: Refusals) -> None:
        """Have chores check costly records, then append all records."""

        def resume(results: list[CheckedRecords], now_ms: int) -> None:
            topics = list(self.ask.topics)
            for number in {number for (number, _), _ in costly}:
                topics[number] = (topics[number][0], list(topics[number][1]))
            for ((number, place), _), checked in zip(costly, results, strict=True):
                parts: Any = topics[number][1]
                parts[place] = (parts[place][0], checked)
            self.ask = self.ask._replace(topics=topics)
            self.append_later(refusals, now_ms)

        self._services.request_work.start(self._request, [check for _, check in costly], resume)

    def _open_topic(self, topic: bytes | str) -> _OpenTopic:
        """Begin to place the records of a topic."""
        image = self._services.controller.image
        name = _name_of(topic, image)
        placed: list[ProducePart] = []
        self._topics.append((topic, placed))
        error = None
        if not name and isinstance(topic, bytes):
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not self._services.permissions.allows(self._request, _WRITE, _TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name not in image.topics:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return name, error, placed

    def _place(self, opened: _OpenTopic, parts: Iterable[tuple[int, Any]], refusals: Refusals, now_ms: int) -> None:
        """Place the records of partitions of one topic."""
        name, error, placed = opened
        version, acks, place = self._request.version, self.acks, self._services.appends.place
        is_allowed = acks in _ACKS and (name not in INTERNAL_TOPICS or self._request.client_id == _ADMIN_CLIENT)
        for index, records in parts:
            part = ProducePart(_new_tuple(TopicPartition, (name, index)))
            placed.append(part)
            self.parts.append(part)
            if error is not None:
                part.refuse(error)
            elif refusals and part.key in refusals:
                part.refuse(*refusals[part.key])
            else:
                records = b"" if records is None else records
                refusal = None if self.plain_bytes >= 0 else request_error(records, version)
                if refusal is None and is_allowed:
                    place(part, records, acks, now_ms)
                elif self._services.controller.image.partition(part.key) is None:
                    part.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif refusal is not None:
                    part.refuse(refusal.code, str(refusal))
                elif acks not in _ACKS:
                    part.refuse(ErrorCode.INVALID_REQUIRED_ACKS)
                else:
                    part.refuse(ErrorCode.INVALID_TOPIC_EXCEPTION)

    def _placed(self) -> None:
        limit_record_errors(self.parts)
        self.ask = _NOTHING  # releases the receive buffer

    def _costly(self, refusals: Refusals) -> Iterator[_CostlyRecords | None]:
        """Yield the records that are too costly to check on the loop, and None for others and for refused records.
        The costs of a long request do not add up, because it pauses between its records."""
        cost = 0
        for number, (topic, parts) in enumerate(self.ask.topics if self.acks in _ACKS else ()):
            name: str | None = None
            for place, (index, records) in enumerate(parts):
                if self.is_long:
                    cost = 0
                if records is None or isinstance(records, CheckedRecords):
                    yield None
                    continue
                plain = plain_cost(records)
                if plain is not None and cost + plain <= LOOP_COST_MAX:
                    cost += plain
                    yield None
                    continue
                if name is None:
                    name = _name_of(topic, self._services.controller.image)
                    if not self._services.permissions.allows_silently(self._request, _WRITE, _TOPIC, name):
                        break
                key = TopicPartition(name, index)
                partition = self._services.partitions.get(key)
                if partition is None or partition.leader is None or key in refusals or name in INTERNAL_TOPICS:
                    yield None
                    continue
                config = partition.log.config
                of_one = check_cost(records, config)
                if cost + of_one <= LOOP_COST_MAX:
                    cost += of_one
                    yield None
                elif request_error(records, self._request.version) is None:
                    check = partial(check_records, records, key, config, self._request.received_ms)
                    yield (number, place), check

    # Response

    def refuse(self, code: ErrorCode, now_ms: int, message: str | None = None) -> Steps[None]:
        """Refuse every partition of the request. None of its records may be placed."""
        for topic, asked in self.ask.topics:
            parts: list[ProducePart] = []
            self._topics.append((topic, parts))
            for index, _ in asked:
                part = ProducePart(TopicPartition("", index))
                part.refuse(code, message)
                parts.append(part)
                self.parts.append(part)
                if not len(self.parts) % PARTS_PER_STEP:
                    now_ms = yield
        self.ask = _NOTHING
        self._services.appends.respond(self, now_ms)

    def send(self, now_ms: int) -> None:
        """Send the response. With acks=0 there is none, but the connection is closed if records were refused."""
        request, throttling, replies = self._request, self._services.throttling, self._services.replies
        has_response = self.acks != 0
        throttle_ms = throttling.of_produce(request, now_ms, is_answered=has_response) if throttling.is_on else 0
        if not has_response:
            replies.reply_nothing(request, now_ms, throttle_ms, close=any(part.error for part in self.parts))
            return
        codes = replies.errors_of(request.api_key)
        has_errors = False
        for part in self.parts:
            codes[part.error] += 1
            has_errors = has_errors or bool(part.error)
        image = self._services.controller.image if has_errors and request.version >= _LEADERS_FROM else None
        if image is None:
            encode = partial(parts_of, self._topics, request.version, request.correlation_id, throttle_ms)
        else:
            encode = partial(self._encoded_with_leaders, image, throttle_ms)
        replies.answer_encoded(request, encode, now_ms, throttle_ms)

    def _encoded_with_leaders(self, image: MetadataImage, throttle_ms: int) -> list[Any]:
        """Encode a response with errors, on any thread. `image` has the leaders that the client may look for."""
        leaders = _leaders(self.parts, image, self.context.listener)
        request = self._request
        return parts_of(self._topics, request.version, request.correlation_id, throttle_ms, leaders)


def _name_of(topic: bytes | str, image: MetadataImage) -> str:
    """Return the name of a topic, or "" if its id is unknown."""
    if isinstance(topic, str):
        return topic
    known = image.topics_by_id.get(topic)
    return known.name if known else ""


def _leaders(parts: list[ProducePart], image: MetadataImage, listener: str) -> dict[Any, LeaderHint]:
    """Return the leaders of partitions that this broker does not lead, so the client needs no Metadata request."""
    hints = {}
    for part in parts:
        if part.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and (state := image.partition(part.key)) is not None:
            endpoint = endpoint_of(image, state.leader, listener)
            address = None if endpoint is None else (endpoint.host, endpoint.port, image.brokers[state.leader].rack)
            hints[part] = LeaderHint(state.leader, state.leader_epoch, address)
    return hints
