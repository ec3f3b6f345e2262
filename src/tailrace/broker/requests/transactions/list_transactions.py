"""ListTransactions (key 66), versions 0–2.

Behaviour
    Returns the transactional ids coordinated here, filtered by state and producer id. Unknown states in the filter are
    listed in the response.
Version notes
    1   a filter by the duration of the transaction
    2   a filter by a regular expression (RE2), which must match the whole id
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.transactions.transaction import TransactionState
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.patterns import UnusablePattern, compile_pattern
from tailrace.model.steps import Steps
from tailrace.protocol.messages import ListTransactionsRequest, ListTransactionsResponse

State = ListTransactionsResponse.TransactionState


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, transactions: Transactions
) -> Steps[ListTransactionsResponse]:
    body: ListTransactionsRequest = request.body
    coordinator = transactions.coordinator
    if coordinator.runtime.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    titles = list(dict.fromkeys(body.state_filters))
    states = {title: TransactionState.of_title(title) for title in titles}
    wanted = {state for state in states.values() if state is not None}
    producer_ids = set(body.producer_id_filters)
    longer_ms = body.duration_filter if request.version >= 1 else -1
    matches = _matcher(body.transactional_id_pattern) if request.version >= 2 else None
    found = []
    for shard in coordinator.runtime.active():
        for one in list(shard):
            yield
            facts = one.facts
            if (
                (producer_ids and facts.producer_id not in producer_ids)
                or (titles and facts.state not in wanted)
                or (longer_ms >= 0 and now_ms - facts.start_ms <= longer_ms)
                or (matches is not None and not matches(one.transactional_id))
                or not permissions.allows(
                    request, Operation.DESCRIBE, AclResource.TRANSACTIONAL_ID, one.transactional_id
                )
            ):
                continue
            found.append(
                State(
                    transactional_id=one.transactional_id,
                    producer_id=facts.producer_id,
                    transaction_state=facts.state.title,
                )
            )
    return ListTransactionsResponse(
        unknown_state_filters=[title for title, state in states.items() if state is None], transaction_states=found
    )


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    try:
        return compile_pattern(pattern).matches
    except UnusablePattern as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{pattern}` is not a valid regular expression: {error}"
        ) from error
