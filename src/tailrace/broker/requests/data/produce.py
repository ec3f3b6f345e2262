"""Produce (key 0), versions 0–13.

Behaviour
    Appends each partition's records and answers with the offset of the first. acks=0 is not answered at all, and a
    connection whose records were refused is closed instead; acks=1 is answered at once; acks=all waits until every
    in-sync replica has the records, or the timeout passes. One bad partition never spoils the rest,
    unless the length or magic of its first batch is wrong: that is the error of the whole request, as in Kafka.
    Other acks, and internal topics, are refused after partitions and formats are checked and transactions verified.
    Records of a transaction are taken once its coordinator knows that the partition is part of it.
    The size of a request counts towards producer_byte_rate, with acks=0 as well.
    Batches that may take long to check, compressed ones above all, are checked beside the loop (`request_work.py`)
    while the connection waits. Then everything is appended as if the request had come just now.
    A request of many partitions pauses (`long_requests.py`) while it is checked, appended and counted.
    What comes together for one partition is written together, and responses leave in order (`handling/appends.py`).
Version notes
    1   throttle time
    2   append time; messages of format 1
    3   record batches of format 2 only, and a transactional id
    5   log start offset
    7   zstd
    8   refused records one by one
    9   flexible encoding
    10  where the leader is, when it is not here
    11  TRANSACTION_ABORTABLE
    12  partitions need not be added to a transaction before they are written to
    13  topic ids instead of names
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.handling.appends import PARTS_A_STEP, Appends
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
from tailrace.records.checks.checked_records import LOOP_COST_MAX, CheckedRecords, check_cost, plain_cost
from tailrace.records.checks.produce_request import (
    FIRST_VERSION_WITH_ZSTD,
    has_unknown_codec,
)
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.produce import ProducePart

_ACKS: Final = (-1, 0, 1)
_ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics, as in Kafka
_LEADERS_FROM: Final = first_version_with("ProduceResponse", "node_endpoints")

_WRITE: Final = Operation.WRITE
_TOPIC: Final = AclResource.TOPIC
_NOTHING: Final = ProduceAsk(None, 0, 0, ())
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time

# A topic whose records are being placed: its name, its error if it has one, and its parts.
_OpenTopic: TypeAlias = tuple[str, ErrorCode | None, list[ProducePart]]
# The place of records in a request, as the numbers of topic and partition there, and the function that checks them.
_CostlyRecords: TypeAlias = tuple[tuple[int, int], Callable[[], CheckedRecords]]


@dataclass(slots=True, kw_only=True)
class ProduceHandler:
    """Handles Produce requests, whose body is a `ProduceAsk`."""

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
        ask = produce.ask
        try:
            is_transactional = has_transactional_records(ask, request.version)
        except KafkaError as error:
            return produce.paced(produce.refuse(error.code, now_ms, str(error)), now_ms)
        if is_transactional and not self._may_use_transaction(request):
            return produce.paced(produce.refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, now_ms), now_ms)
        if request.version < FIRST_VERSION_WITH_ZSTD and produce.has_unknown_codec():
            return produce.paced(produce.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, now_ms), now_ms)
        if not is_transactional:
            return produce.append({}, now_ms)
        verified = verify_produce(
            ask,
            request.version,
            produce.append_later,
            now_ms,
            config=self.config,
            controller=self.controller,
            purgatory=self.appends.purgatory,
            transaction_verification=self.transaction_verification,
        )
        return produce.paced(produce.verify(verified, now_ms), now_ms)

    def _may_use_transaction(self, request: Request) -> bool:
        transactional_id = request.body.transactional_id
        return transactional_id is not None and self.permissions.allows(
            request, _WRITE, AclResource.TRANSACTIONAL_ID, transactional_id
        )


handle = ProduceHandler


class _Produce:
    """One Produce request, from its topics to its response."""

    __slots__ = (
        "_request", "_services", "_topics", "acks", "ask", "context", "deadline_ms", "is_long", "is_ready", "parts",
    )  # fmt: skip

    def __init__(self, services: ProduceHandler, request: Request, now_ms: int) -> None:
        ask: ProduceAsk = request.body
        count = 0
        for _, asked in ask.topics:
            count += len(asked) or 1
        self._services = services
        self._request = request.without_body()
        self._topics: list[ProducedTopic] = []
        self.ask = ask
        self.context = request.context
        self.acks = ask.acks
        self.deadline_ms = now_ms + max(ask.timeout_ms, 0)
        self.parts: list[ProducePart] = []
        self.is_long = count > PARTS_A_STEP
        self.is_ready = False

    def paced(self, steps: Steps[None], now_ms: int) -> Steps[None] | None:
        """Return the steps of a request of many partitions; run those of another request."""
        return steps if self.is_long else run_steps(steps, now_ms)

    def verify(self, verified: Steps[ErrorCode | None], now_ms: int) -> Steps[None]:
        """Have the transaction verified, which appends the records then or later."""
        refused = yield from verified
        if refused is not None:
            yield from self.refuse(refused, now_ms)
        elif not self.is_long:
            self._keep_records()

    def _keep_records(self) -> None:
        """Copy records, so that a small request which waits does not keep the memory of many requests."""
        topics = [
            (topic, [(index, None if records is None else memoryview(bytearray(records))) for index, records in parts])
            for topic, parts in self.ask.topics
        ]
        self.ask = self.ask._replace(topics=topics)

    def has_unknown_codec(self) -> bool:
        """Return True if a partition's first batch has a codec that does not exist. Kafka looks for zstd in versions
        that do not know it, and refuses the whole request for such a codec."""
        services = self._services
        for topic, parts in self.ask.topics:
            for index, records in parts:
                if records is not None and has_unknown_codec(records):
                    key = TopicPartition(self._name_of(topic), index)
                    if services.controller.image.partition(key) is not None and services.permissions.allows_silently(
                        self._request, _WRITE, _TOPIC, key.topic
                    ):
                        return True
        return False

    # Append

    def append_later(self, refusals: Refusals, now_ms: int) -> None:
        """Append the records of a request that has waited."""
        steps = self.append(refusals, now_ms)
        if steps is not None:
            self._services.long_requests.start(self._request, steps, now_ms)

    def append(self, refusals: Refusals, now_ms: int) -> Steps[None] | None:
        """Place the records of all partitions. Return steps for a request of many partitions."""
        if self.is_long:
            return self._append_in_steps(refusals, now_ms)
        costly = [found for found in self._costly(refusals) if found is not None]
        if costly:
            self._check_beside(costly, refusals)
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
            if not number % PARTS_A_STEP:
                now_ms = yield
        if costly:
            self._check_beside(costly, refusals)
            return
        appends = self._services.appends
        number = cost = 0
        for topic, parts in self.ask.topics:
            opened = self._open_topic(topic)
            for part in parts or (None,):
                number += 1
                if part is not None:
                    self._place(opened, (part,), refusals, now_ms)
                    cost += cost_of(part[1])
                if number >= PARTS_A_STEP or cost > LOOP_COST_MAX:
                    appends.write_touched(now_ms)  # nothing stays placed while others change logs
                    now_ms = yield
                    number = cost = 0
        appends.write_touched(now_ms)
        self._placed()
        yield from appends.written_in_steps(self, now_ms)

    def _check_beside(self, costly: list[_CostlyRecords], refusals: Refusals) -> None:
        """Check costly records beside the loop, then append all records."""

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
        name = self._name_of(topic)
        placed: list[ProducePart] = []
        self._topics.append((topic, placed))
        return name, self._topic_error(topic, name), placed

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
                refusal = request_error(records, version)
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
        self.ask = _NOTHING  # the frame's memory is needed again

    def _name_of(self, topic: bytes | str) -> str:
        """Return the name of a topic, "" if its id is unknown."""
        if isinstance(topic, str):
            return topic
        known = self._services.controller.image.topics_by_id.get(topic)
        return known.name if known else ""

    def _topic_error(self, topic: bytes | str, name: str) -> ErrorCode | None:
        if not name and isinstance(topic, bytes):
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not self._services.permissions.allows(self._request, _WRITE, _TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if name not in self._services.controller.image.topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None

    def _costly(self, refusals: Refusals) -> Iterator[_CostlyRecords | None]:
        """Yield the records that are too costly to check on the loop, except those that are refused anyway, and None
        for all others. The costs of a long request do not add up, because it pauses between its records."""
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
                    name = self._name_of(topic)
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
                if not len(self.parts) % PARTS_A_STEP:
                    now_ms = yield
        self.ask = _NOTHING
        self._services.appends.respond(self, now_ms)

    def send(self, now_ms: int) -> None:
        """Send the response. A request with acks=0 has none; its connection is closed if records were refused."""
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
        replies.send(request, partial(self._encoded, image, throttle_ms), now_ms, throttle_ms)

    def _encoded(self, image: MetadataImage | None, throttle_ms: int) -> list[Any]:
        """Encode the response, on any thread. `image`: the metadata that has the leaders, if the client needs them."""
        leaders = None if image is None else _leaders(self.parts, image, self.context.listener)
        request = self._request
        return parts_of(self._topics, request.version, request.correlation_id, throttle_ms, leaders)


def _leaders(parts: list[ProducePart], image: MetadataImage, listener: str) -> dict[Any, LeaderHint]:
    """Return where the partitions are led that are not led here, so that the client need not ask for metadata."""
    hints = {}
    for part in parts:
        if part.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and (state := image.partition(part.key)) is not None:
            endpoint = endpoint_of(image, state.leader, listener)
            address = None
            if endpoint is not None:
                address = (endpoint.host, endpoint.port, image.brokers[state.leader].rack)
            hints[part] = LeaderHint(state.leader, state.leader_epoch, address)
    return hints
