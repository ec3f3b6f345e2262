"""DescribeTransactions (key 65), version 0.

Behaviour
    Returns the state of transactional ids at their coordinator: state, producer, timeout, start time, and the
    partitions without an end marker.
"""

from __future__ import annotations

from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

State = DescribeTransactionsResponse.TransactionState
TopicData = DescribeTransactionsResponse.TopicData


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, transactions: Transactions
) -> DescribeTransactionsResponse:
    body: DescribeTransactionsRequest = request.body
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe(request, transactional_id, permissions=permissions, transactions=transactions)
            for transactional_id in body.transactional_ids
        ]
    )


def _describe(
    request: Request, transactional_id: str, *, permissions: Permissions, transactions: Transactions
) -> State:
    if not permissions.allows(request, Operation.DESCRIBE, AclResource.TRANSACTIONAL_ID, transactional_id):
        return State(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        facts = transactions.coordinator.find(transactional_id)
    except KafkaError as error:
        return State(transactional_id=transactional_id, error_code=error.code)
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(facts.partitions):
        if permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic):
            topics.setdefault(topic, []).append(index)
    return State(
        transactional_id=transactional_id,
        transaction_state=facts.state.title,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_start_time_ms=facts.start_ms,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
