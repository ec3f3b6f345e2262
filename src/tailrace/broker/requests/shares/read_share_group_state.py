"""ReadShareGroupState (key 84), version 0.

Behaviour
    Returns the state of a share group's partitions to their new leader. Older leaders are fenced from now on.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.share_state_request import OnResult, ResultFields, answer_partitions
from tailrace.protocol.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_coordinator: ShareCoordinator
) -> ReadShareGroupStateResponse | None:
    body: ReadShareGroupStateRequest = request.body

    def read(
        key: SharePartitionKey, asked: ReadShareGroupStateRequest.PartitionData, on_result: OnResult, now_ms: int
    ) -> None:
        share_coordinator.read(
            key, asked.leader_epoch, lambda state, now_ms: on_result(_fields(state), now_ms), on_result, now_ms
        )

    def result(topic_id: bytes, partitions: list[ResultFields]) -> ReadShareGroupStateResponse.ReadStateResult:
        return ReadShareGroupStateResponse.ReadStateResult(
            topic_id=topic_id,
            partitions=[ReadShareGroupStateResponse.PartitionResult(**fields) for fields in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        read,
        result,
        ReadShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )


def _fields(state: PersistedState) -> ResultFields:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [ReadShareGroupStateResponse.StateBatch(**batch._asdict()) for batch in state.batches],
    }
