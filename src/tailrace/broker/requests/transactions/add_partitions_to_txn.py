"""AddPartitionsToTxn (key 24), versions 0–5.

Behaviour
    Adds partitions to a producer's transaction before the producer writes to them. If one partition does not exist or
    the client may not write to it, none is added.
Version notes
    2   a fenced producer gets PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
    4   sent by brokers: several transactions at once, or only a check that a partition is part of a transaction
    5   TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.replies import Replies
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.topics.topic_view import INTERNAL_TOPICS
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.transactions.transaction import BUMPS_EPOCH_FROM
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult

_FENCED_FROM = 2
_BATCHES_FROM = first_version_with("AddPartitionsToTxnRequest", "transactions")


class _RequestedTransaction(NamedTuple):
    """One transaction's part of a request."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    topics: list[str]
    partitions: list[TopicPartition]
    is_verified_only: bool


_Add: TypeAlias = Callable[
    [_RequestedTransaction, ErrorCode | Sequence[ErrorCode], int], None
]  # one error for all partitions, or one for each


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    permissions: Permissions,
    replies: Replies,
    transactions: Transactions,
) -> AddPartitionsToTxnResponse | None:
    if request.version >= _BATCHES_FROM:
        check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    asked = _requested_transactions(request)
    if not asked:
        return AddPartitionsToTxnResponse()
    waiting = request.without_body()
    results: list[Result] = []

    def add(one: _RequestedTransaction, errors: ErrorCode | Sequence[ErrorCode], now_ms: int) -> None:
        results.append(_result(one, errors))
        if len(results) < len(asked):
            return
        if waiting.version < _BATCHES_FROM:
            response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
        else:
            response = AddPartitionsToTxnResponse(results_by_transaction=results)
        replies.answer(waiting, response, now_ms)

    for one in asked:
        _add_to_transaction(
            request, one, add, now_ms, controller=controller, permissions=permissions, transactions=transactions
        )
    return None


def _requested_transactions(request: Request) -> list[_RequestedTransaction]:
    body: AddPartitionsToTxnRequest = request.body
    if request.version < _BATCHES_FROM:
        producer = ProducerIdAndEpoch(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
        topics = body.v3_and_below_topics
        return [
            _RequestedTransaction(
                body.v3_and_below_transactional_id,
                producer,
                [topic.name for topic in topics],
                _partitions(topics),
                is_verified_only=False,
            )
        ]
    return [
        _RequestedTransaction(
            one.transactional_id,
            ProducerIdAndEpoch(one.producer_id, one.producer_epoch),
            [topic.name for topic in one.topics],
            _partitions(one.topics),
            one.verify_only,
        )
        for one in body.transactions
    ]


def _partitions(topics: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _add_to_transaction(
    request: Request,
    one: _RequestedTransaction,
    add: _Add,
    now_ms: int,
    *,
    controller: Controller,
    permissions: Permissions,
    transactions: Transactions,
) -> None:
    version, partitions = request.version, one.partitions
    is_client = version < _BATCHES_FROM
    if is_client and not permissions.allows(
        request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, one.transactional_id
    ):
        add(one, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, now_ms)
        return
    errors = [
        _topic_error(request, key, is_client=is_client, controller=controller, permissions=permissions)
        for key in partitions
    ]
    if any(error is not ErrorCode.NONE for error in errors):
        add(one, [ErrorCode.OPERATION_NOT_ATTEMPTED if error is ErrorCode.NONE else error for error in errors], now_ms)
        return
    coordinator = transactions.coordinator
    if one.is_verified_only:
        verified = coordinator.verify_partitions(one.transactional_id, one.producer, partitions)
        add(one, [verified[key] for key in partitions], now_ms)
        return

    def answer(error: ErrorCode, now_ms: int) -> None:
        if error is ErrorCode.PRODUCER_FENCED and version < _FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        add(one, error, now_ms)

    client_version = 0 if is_client else BUMPS_EPOCH_FROM
    coordinator.add_partitions(one.transactional_id, one.producer, partitions, client_version, answer, now_ms)


def _topic_error(
    request: Request, key: TopicPartition, *, is_client: bool, controller: Controller, permissions: Permissions
) -> ErrorCode:
    if is_client and (
        key.topic in INTERNAL_TOPICS or not permissions.allows(request, Operation.WRITE, AclResource.TOPIC, key.topic)
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if controller.image.partition(key) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _result(one: _RequestedTransaction, errors: ErrorCode | Sequence[ErrorCode]) -> Result:
    topics: dict[str, list[PartitionResult]] = {}
    if isinstance(errors, ErrorCode):
        topics = {name: [] for name in one.topics}  # as in Kafka, including topics without partitions
        errors = [errors] * len(one.partitions)
    for key, error in zip(one.partitions, errors, strict=True):
        found = PartitionResult(partition_index=key.partition, partition_error_code=error)
        topics.setdefault(key.topic, []).append(found)
    return Result(
        transactional_id=one.transactional_id,
        topic_results=[TopicResult(name=name, results_by_partition=found) for name, found in topics.items()],
    )
