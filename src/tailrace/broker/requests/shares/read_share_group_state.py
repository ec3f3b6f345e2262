"""ReadShareGroupState (key 84), version 0.

Behaviour
    A partition's new leader learns how far a share group has come; leaders before it are fenced from now on.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_state_request import Take, Told, answer_partitions
from tailrace.broker.shares.share_states import ShareStates
from tailrace.protocol.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from tailrace.shares.state.share_state import ShareState
from tailrace.shares.state.share_state_coordinator import SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_states: ShareStates
) -> ReadShareGroupStateResponse | None:
    body: ReadShareGroupStateRequest = request.body

    def ask(key: SharePartitionKey, asked: ReadShareGroupStateRequest.PartitionData, take: Take, now_ms: int) -> None:
        share_states.read(key, asked.leader_epoch, lambda state, now_ms: take(_told(state), now_ms), take, now_ms)

    def result(topic_id: bytes, partitions: list[Told]) -> ReadShareGroupStateResponse.ReadStateResult:
        return ReadShareGroupStateResponse.ReadStateResult(
            topic_id=topic_id, partitions=[ReadShareGroupStateResponse.PartitionResult(**told) for told in partitions]
        )

    return answer_partitions(
        request, body.topics, ask, result, ReadShareGroupStateResponse, now_ms, permissions=permissions, replies=replies
    )


def _told(state: ShareState) -> Told:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [ReadShareGroupStateResponse.StateBatch(**batch._asdict()) for batch in state.batches],
    }
