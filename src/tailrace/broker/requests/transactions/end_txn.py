"""EndTxn (key 26), versions 0–5.

Behaviour
    Commits or aborts a producer's transaction. The response is sent when the decision is in the log. The markers are
    written after that.
Version notes
    2   a fenced producer gets PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
    5   every transaction ends with a new epoch, which is returned; an empty transaction can be aborted (KIP-890)
"""

from __future__ import annotations

from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.transactions.ending import EndRequest
from tailrace.coordinator.transactions.transaction import BUMPS_EPOCH_FROM
from tailrace.coordinator.transactions.transaction_coordinator import EndAnswer
from tailrace.model.errors import ErrorCode
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import EndTxnRequest, EndTxnResponse

_FENCED_FROM = 2
_EPOCHS_FROM = first_version_with("EndTxnResponse", "producer_id")


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, transactions: Transactions
) -> EndTxnResponse | None:
    body: EndTxnRequest = request.body
    if not permissions.allows(request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    waiting = request.without_body()

    def answer(result: EndAnswer, now_ms: int) -> None:
        error = result.error
        if error is ErrorCode.PRODUCER_FENCED and waiting.version < _FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        response = EndTxnResponse(error_code=error)
        if waiting.version >= _EPOCHS_FROM:
            response.producer_id = result.ended.producer_id
            response.producer_epoch = result.ended.producer_epoch
        replies.answer(waiting, response, now_ms)

    client_version = BUMPS_EPOCH_FROM if request.version >= _EPOCHS_FROM else 0
    end = EndRequest(body.producer_id, body.producer_epoch, body.committed, client_version)
    transactions.coordinator.end(body.transactional_id, end, answer, now_ms)
    return None
