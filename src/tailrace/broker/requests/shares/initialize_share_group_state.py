"""InitializeShareGroupState (key 83), version 0.

Behaviour
    The share coordinator begins to keep a share group's state of partitions, or begins anew from another offset.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_state_request import Take, Told, answer_partitions, fine
from tailrace.broker.shares.share_states import ShareStates
from tailrace.protocol.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse
from tailrace.shares.state.share_state_coordinator import SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_states: ShareStates
) -> InitializeShareGroupStateResponse | None:
    body: InitializeShareGroupStateRequest = request.body

    def ask(
        key: SharePartitionKey, asked: InitializeShareGroupStateRequest.PartitionData, take: Take, now_ms: int
    ) -> None:
        share_states.initialize(key, asked.state_epoch, asked.start_offset, fine(take), take, now_ms)

    def result(topic_id: bytes, partitions: list[Told]) -> InitializeShareGroupStateResponse.InitializeStateResult:
        return InitializeShareGroupStateResponse.InitializeStateResult(
            topic_id=topic_id,
            partitions=[InitializeShareGroupStateResponse.PartitionResult(**told) for told in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        ask,
        result,
        InitializeShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )
