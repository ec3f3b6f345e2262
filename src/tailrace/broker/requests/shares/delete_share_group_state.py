"""DeleteShareGroupState (key 86), version 0.

Behaviour
    Deletes the state of a share group's partitions at the share coordinator. Unknown state is not an error.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.share_state_request import OnResult, ResultFields, answer_partitions, on_success
from tailrace.protocol.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from tailrace.shares.state.persisted_state import SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_coordinator: ShareCoordinator
) -> DeleteShareGroupStateResponse | None:
    body: DeleteShareGroupStateRequest = request.body

    def delete(
        key: SharePartitionKey, asked: DeleteShareGroupStateRequest.PartitionData, on_result: OnResult, now_ms: int
    ) -> None:
        share_coordinator.delete(key, on_success(on_result), on_result, now_ms)

    def result(topic_id: bytes, partitions: list[ResultFields]) -> DeleteShareGroupStateResponse.DeleteStateResult:
        return DeleteShareGroupStateResponse.DeleteStateResult(
            topic_id=topic_id,
            partitions=[DeleteShareGroupStateResponse.PartitionResult(**fields) for fields in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        delete,
        result,
        DeleteShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )
