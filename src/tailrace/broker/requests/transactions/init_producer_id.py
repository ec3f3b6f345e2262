"""InitProducerId (key 22), versions 0–5.

Behaviour
    Without a transactional id: returns a new producer id for an idempotent producer.
    With a transactional id: returns its producer id and next epoch. The previous producer with the same transactional
    id is fenced, and its open transaction is aborted first. Until then the error is CONCURRENT_TRANSACTIONS.
Version notes
    3   a producer can ask to keep its id with a new epoch, after an error
    4   a fenced producer gets PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
Not implemented
    two-phase commit (version 6), which Kafka 4.3 does not enable by default either
"""

from __future__ import annotations

from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Authorizer, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.transactions.transaction_shard import InitAnswer, ProducerIdAndEpoch
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from tailrace.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

_FENCED_FROM = 4


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    permissions: Permissions,
    replies: Replies,
    transactions: Transactions,
) -> InitProducerIdResponse | None:
    body: InitProducerIdRequest = request.body
    if body.transactional_id is not None:
        if not permissions.allows(request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id):
            return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not _may_be_idempotent(request, authorizer=authorizer, permissions=permissions):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (body.producer_id == NO_PRODUCER_ID) != (body.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if body.transactional_id is None:
        return InitProducerIdResponse(producer_id=transactions.producer_ids.next(now_ms), producer_epoch=0)
    expected = None
    if body.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    waiting = request.without_body()

    def answer(result: InitAnswer, now_ms: int) -> None:
        if result.error is ErrorCode.NONE:
            response = InitProducerIdResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)
        elif result.error is ErrorCode.PRODUCER_FENCED and waiting.version < _FENCED_FROM:
            response = _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
        else:
            response = _refused(result.error)
        replies.answer(waiting, response, now_ms)

    coordinator = transactions.coordinator
    coordinator.init_producer(body.transactional_id, body.transaction_timeout_ms, expected, answer, now_ms)
    return None


def _may_be_idempotent(request: Request, *, authorizer: Authorizer, permissions: Permissions) -> bool:
    """Return True if the client may write to some topic, which allows idempotent producers too (KIP-679)."""
    context = request.context
    return permissions.allows_silently(
        request, Operation.IDEMPOTENT_WRITE, AclResource.CLUSTER, CLUSTER_NAME
    ) or authorizer.allows_some(context.principal, context.client_host, Operation.WRITE, AclResource.TOPIC)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
