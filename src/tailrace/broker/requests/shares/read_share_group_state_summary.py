"""ReadShareGroupStateSummary (key 87), versions 0–1.

Behaviour
    How far a share group has come in partitions, without what became of single records; nobody is fenced by it.
Version notes
    1   how many records behind the start offset are done with
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_state_request import Take, Told, answer_partitions
from tailrace.broker.shares.share_states import ShareStates
from tailrace.protocol.messages import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
from tailrace.shares.state.share_state import UNINITIALIZED_OFFSET, UNKNOWN_COUNT, ShareState
from tailrace.shares.state.share_state_coordinator import SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_states: ShareStates
) -> ReadShareGroupStateSummaryResponse | None:
    body: ReadShareGroupStateSummaryRequest = request.body

    def ask(
        key: SharePartitionKey, asked: ReadShareGroupStateSummaryRequest.PartitionData, take: Take, now_ms: int
    ) -> None:
        share_states.read_summary(key, lambda state, now_ms: take(_told(state), now_ms), take, now_ms)

    def result(topic_id: bytes, partitions: list[Told]) -> ReadShareGroupStateSummaryResponse.ReadStateSummaryResult:
        return ReadShareGroupStateSummaryResponse.ReadStateSummaryResult(
            topic_id=topic_id,
            partitions=[ReadShareGroupStateSummaryResponse.PartitionResult(**told) for told in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        ask,
        result,
        ReadShareGroupStateSummaryResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )


def _told(state: ShareState | None) -> Told:
    if state is None:
        return {"start_offset": UNINITIALIZED_OFFSET, "delivery_complete_count": UNKNOWN_COUNT}
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete_count,
    }
