"""Produce (key 0), versions 0–13.

Behaviour
    Appends each partition's records and answers with the offset of the first. acks=0 is not answered at all, and a
    connection whose records were refused is closed instead; acks=1 is answered at once; acks=all waits until every
    in-sync replica has the records, or the timeout passes. One bad partition never spoils the rest.
    Records of a transaction are taken once its coordinator knows that the partition is part of it.
    The size of a request counts towards producer_byte_rate, with acks=0 as well.
    Batches that may take long to check, compressed ones above all, are checked beside the loop (`request_work.py`)
    while the connection waits. Then everything is appended as if the request had come just now.
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

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import NamedTuple

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.handling.round import Round
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.request_context import Request
from tailrace.broker.requests.data.produce_verification import Refusals, has_transactional_records, verify_produce
from tailrace.broker.requests.topics.topic_view import endpoint_of
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.protocol.field_versions import PRODUCE_TOPIC_IDS, first_version_with
from tailrace.protocol.messages import ProduceRequest, ProduceResponse
from tailrace.records.batch import Buffer
from tailrace.records.checked_records import LOOP_COST_MAX, CheckedRecords, check_cost
from tailrace.records.produce_request import check_produce_request
from tailrace.records.record_rules import RECORD_ERRORS_MAX
from tailrace.records.validation import check_produced
from tailrace.replication.delayed_produce import DelayedProduce, has_to_wait
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.produce import ProducedPartition, append_produced
from tailrace.waiting.purgatory import Purgatory

_FORMAT_2_FROM = 3
_LEADERS_FROM = first_version_with("ProduceResponse", "node_endpoints")


class ProducedTopic(NamedTuple):
    """What became of one topic's part of a request; nothing of the request itself, whose memory is needed again."""

    name: str
    topic_id: bytes
    parts: list[ProducedPartition]


class _Services(NamedTuple):
    """The services that an append needs."""

    controller: Controller
    current_round: Round
    partitions: HostedPartitions
    permissions: Permissions
    purgatory: Purgatory
    replies: Replies
    request_work: RequestWork
    throttling: Throttling


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    current_round: Round,
    partitions: HostedPartitions,
    permissions: Permissions,
    purgatory: Purgatory,
    replies: Replies,
    request_work: RequestWork,
    throttling: Throttling,
    config: BrokerConfig,
    transaction_verification: TransactionVerification,
) -> None:
    services = _Services(
        controller, current_round, partitions, permissions, purgatory, replies, request_work, throttling
    )
    if not has_transactional_records(request):
        _append(request, {}, now_ms, services)
        return
    body: ProduceRequest = request.body
    if body.transactional_id is None or not permissions.allows(
        request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id
    ):
        _refuse_request(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, now_ms, replies, throttling)
        return
    has_gone_on = False

    def go_on(refusals: Refusals, now_ms: int) -> None:
        nonlocal has_gone_on
        has_gone_on = True
        _append(request, refusals, now_ms, services)

    refused = verify_produce(
        request,
        go_on,
        now_ms,
        config=config,
        controller=controller,
        purgatory=purgatory,
        transaction_verification=transaction_verification,
    )
    if refused is not None:
        _refuse_request(request, refused, now_ms, replies, throttling)
    elif not has_gone_on:
        _keep_records(body)


def _keep_records(body: ProduceRequest) -> None:
    """Copy what lies in memory that is needed again before the request goes on."""
    for topic in body.topic_data:
        for one in topic.partition_data:
            if one.records is not None:
                one.records = bytearray(one.records)


def _append(request: Request, refusals: Refusals, now_ms: int, services: _Services) -> None:
    body: ProduceRequest = request.body
    controller, current_round, partitions, permissions, purgatory, replies, request_work, throttling = services
    if body.acks not in (-1, 0, 1):
        _answer(request, _refuse_all(request, ErrorCode.INVALID_REQUIRED_ACKS), now_ms, replies, throttling)
        return
    costly = list(
        _costly_records(request, refusals, controller=controller, partitions=partitions, permissions=permissions)
    )
    if costly:

        def resume(results: list[CheckedRecords], now_ms: int) -> None:
            for (one, _), checked in zip(costly, results, strict=True):
                one.records = checked
            _append(request, refusals, now_ms, services)

        request_work.start(request, [check for _, check in costly], resume)
        return
    topics = [
        ProducedTopic(
            topic.name,
            topic.topic_id,
            _produce_topic(
                request, topic, refusals, now_ms, controller=controller, partitions=partitions, permissions=permissions
            ),
        )
        for topic in body.topic_data
    ]
    parts = [part for topic in topics for part in topic.parts]
    _limit_record_errors(parts)
    for part in parts:
        if part.is_appended:
            current_round.appended(part.key, now_ms)
    if body.acks == 0:
        refused = [part for part in parts if not part.is_appended]
        throttle_ms = throttling.of_produce(request, now_ms, is_answered=False) if throttling.is_on else 0
        replies.reply_nothing(request, now_ms, throttle_ms, close=bool(refused))
        return
    if has_to_wait(parts, body.acks):
        waiting = request.without_body()

        def answer(_: DelayedProduce, now_ms: int) -> None:
            _answer(waiting, _response(waiting, topics, controller=controller), now_ms, replies, throttling)

        operation = DelayedProduce(parts, partitions, now_ms + max(body.timeout_ms, 0), answer)
        if not purgatory.try_complete_or_watch(operation, operation.keys(), now_ms):
            replies.parked(waiting.context, operation)
        return
    _answer(request, _response(request, topics, controller=controller), now_ms, replies, throttling)


def answer_part(
    request: Request,
    topic_id: bytes,
    part: ProducedPartition,
    now_ms: int,
    *,
    controller: Controller,
    replies: Replies,
    throttling: Throttling,
) -> None:
    """Answer a request of one partition that has waited elsewhere (`waiting_produce.py`)."""
    topic = ProducedTopic(part.key.topic, topic_id, [part])
    _answer(request, _response(request, [topic], controller=controller), now_ms, replies, throttling)


def _answer(request: Request, response: ProduceResponse, now_ms: int, replies: Replies, throttling: Throttling) -> None:
    throttle_ms = throttling.of_produce(request, now_ms, is_answered=True) if throttling.is_on else 0
    replies.reply(request, response, now_ms, throttle_ms)


def _costly_records(
    request: Request,
    refusals: Refusals,
    *,
    controller: Controller,
    partitions: HostedPartitions,
    permissions: Permissions,
) -> Iterator[tuple[ProduceRequest.PartitionProduceData, Callable[[], CheckedRecords]]]:
    """Yield the partitions whose records are too costly to check on the loop, except those that are refused anyway,
    each with the function that checks them."""
    cost = 0
    for topic in request.body.topic_data:
        name = _topic_name(request, topic, controller=controller)
        if not permissions.sees(request, Operation.WRITE, AclResource.TOPIC, name):
            continue
        for one in topic.partition_data:
            key = TopicPartition(name, one.index)
            partition = partitions.get(key)
            if (
                partition is None
                or partition.leader is None
                or key in refusals
                or one.records is None
                or isinstance(one.records, CheckedRecords)
            ):
                continue
            config = partition.log.config
            of_one = check_cost(one.records, config)
            if cost + of_one <= LOOP_COST_MAX:
                cost += of_one
            elif _request_error(one.records, request.version) is None:
                yield one, partial(_checked, one.records, key, config, request.received_ms)


def _checked(records: Buffer, key: TopicPartition, config: TopicConfig, now_ms: int) -> CheckedRecords:
    """Check a partition's records, on any thread."""
    try:
        return check_produced(records, config=config, now_ms=now_ms, partition=key)
    except KafkaError as error:
        return CheckedRecords(len(records), None, refusal=copy(error))


def _limit_record_errors(parts: list[ProducedPartition]) -> None:
    """Limit the refused records that a response names to those of one batch."""
    room = RECORD_ERRORS_MAX
    for part in parts:
        errors = part.response.record_errors
        if errors:
            part.response.record_errors = errors[:room]
            room -= len(part.response.record_errors)


def _request_error(records: Buffer | CheckedRecords, version: int) -> KafkaError | None:
    """Return why records are not what a version may hold; records that were checked before have passed this."""
    if version < _FORMAT_2_FROM or isinstance(records, CheckedRecords):
        return None
    try:
        check_produce_request(records, version)
    except KafkaError as refusal:
        return refusal
    return None


def _topic_name(request: Request, topic: ProduceRequest.TopicProduceData, *, controller: Controller) -> str:
    """Return the name of a topic, "" if its id is unknown."""
    if request.version < PRODUCE_TOPIC_IDS:
        return topic.name
    known = controller.image.topics_by_id.get(topic.topic_id)
    return known.name if known else ""


def _produce_topic(
    request: Request,
    topic: ProduceRequest.TopicProduceData,
    refusals: Refusals,
    now_ms: int,
    *,
    controller: Controller,
    partitions: HostedPartitions,
    permissions: Permissions,
) -> list[ProducedPartition]:
    name = _topic_name(request, topic, controller=controller)
    error: ErrorCode | None = None
    if request.version >= PRODUCE_TOPIC_IDS and not name:
        error = ErrorCode.UNKNOWN_TOPIC_ID
    if error is None and not permissions.allows(request, Operation.WRITE, AclResource.TOPIC, name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if error is None and name not in controller.image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    produced = []
    for partition in topic.partition_data:
        key = TopicPartition(name, partition.index)
        if error is not None:
            produced.append(_refused(key, error))
            continue
        if key in refusals:
            produced.append(_refused(key, *refusals[key]))
            continue
        records = partition.records if partition.records is not None else b""
        refusal = _request_error(records, request.version)
        if refusal is not None:
            produced.append(_refused(key, refusal.code, str(refusal)))
            continue
        produced.append(append_produced(partitions, key, records, required_acks=request.body.acks, now_ms=now_ms))
    return produced


def _refused(key: TopicPartition, code: ErrorCode, message: str | None = None) -> ProducedPartition:
    part = ProducedPartition(key)
    part.refuse(code, message)
    return part


def _refuse_request(request: Request, code: ErrorCode, now_ms: int, replies: Replies, throttling: Throttling) -> None:
    if request.body.acks == 0:
        replies.reply_nothing(request, now_ms, close=True)
    else:
        _answer(request, _refuse_all(request, code), now_ms, replies, throttling)


def _refuse_all(request: Request, code: ErrorCode) -> ProduceResponse:
    """The same refusal for every partition."""
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(index=one.index, error_code=code, base_offset=-1)
                    for one in topic.partition_data
                ],
            )
            for topic in request.body.topic_data
        ]
    )


def _response(request: Request, topics: list[ProducedTopic], *, controller: Controller) -> ProduceResponse:
    response = ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=[part.response for part in topic.parts]
            )
            for topic in topics
        ]
    )
    if request.version >= _LEADERS_FROM:
        _tell_leaders(request, response, [part for topic in topics for part in topic.parts], controller=controller)
    return response


def _tell_leaders(
    request: Request, response: ProduceResponse, parts: list[ProducedPartition], *, controller: Controller
) -> None:
    """Where a partition is led from, when it is not here: the client need not ask for metadata first."""
    told = set()
    for part in parts:
        if part.response.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            continue
        state = controller.image.partition(part.key)
        if state is None:
            continue
        part.response.current_leader = ProduceResponse.LeaderIdAndEpoch(
            leader_id=state.leader, leader_epoch=state.leader_epoch
        )
        endpoint = endpoint_of(controller.image, state.leader, request.context.listener)
        if endpoint is not None and state.leader not in told:
            told.add(state.leader)
            response.node_endpoints.append(
                ProduceResponse.NodeEndpoint(
                    node_id=state.leader,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=controller.image.brokers[state.leader].rack,
                )
            )
