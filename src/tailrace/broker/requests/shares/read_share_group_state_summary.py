"""ReadShareGroupStateSummary (key 87), versions 0–1.

Behaviour
    Returns the progress of a share group in partitions, without the states of single records. It fences no leader.
Version notes
    1   the number of records after the start offset whose delivery is complete
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.share_state_request import OnResult, ResultFields, answer_partitions
from tailrace.protocol.messages import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
from tailrace.shares.state.persisted_state import UNINITIALIZED_OFFSET, UNKNOWN_COUNT, PersistedState, SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_coordinator: ShareCoordinator
) -> ReadShareGroupStateSummaryResponse | None:
    body: ReadShareGroupStateSummaryRequest = request.body

    def read_summary(
        key: SharePartitionKey, asked: ReadShareGroupStateSummaryRequest.PartitionData, on_result: OnResult, now_ms: int
    ) -> None:
        share_coordinator.read_summary(key, lambda state, now_ms: on_result(_fields(state), now_ms), on_result, now_ms)

    def result(
        topic_id: bytes, partitions: list[ResultFields]
    ) -> ReadShareGroupStateSummaryResponse.ReadStateSummaryResult:
        return ReadShareGroupStateSummaryResponse.ReadStateSummaryResult(
            topic_id=topic_id,
            partitions=[ReadShareGroupStateSummaryResponse.PartitionResult(**fields) for fields in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        read_summary,
        result,
        ReadShareGroupStateSummaryResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )


def _fields(state: PersistedState | None) -> ResultFields:
    if state is None:
        return {"start_offset": UNINITIALIZED_OFFSET, "delivery_complete_count": UNKNOWN_COUNT}
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete_count,
    }
