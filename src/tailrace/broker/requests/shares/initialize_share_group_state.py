"""InitializeShareGroupState (key 83), version 0.

Behaviour
    Initializes the state of a share group's partitions at the share coordinator, or resets it to another offset.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.share_state_request import OnResult, ResultFields, answer_partitions, on_success
from tailrace.protocol.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse
from tailrace.shares.state.persisted_state import SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_coordinator: ShareCoordinator
) -> InitializeShareGroupStateResponse | None:
    body: InitializeShareGroupStateRequest = request.body

    def initialize(
        key: SharePartitionKey, asked: InitializeShareGroupStateRequest.PartitionData, on_result: OnResult, now_ms: int
    ) -> None:
        share_coordinator.initialize(
            key, asked.state_epoch, asked.start_offset, on_success(on_result), on_result, now_ms
        )

    def result(
        topic_id: bytes, partitions: list[ResultFields]
    ) -> InitializeShareGroupStateResponse.InitializeStateResult:
        return InitializeShareGroupStateResponse.InitializeStateResult(
            topic_id=topic_id,
            partitions=[InitializeShareGroupStateResponse.PartitionResult(**fields) for fields in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        initialize,
        result,
        InitializeShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )
