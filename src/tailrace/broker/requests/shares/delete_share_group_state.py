"""DeleteShareGroupState (key 86), version 0.

Behaviour
    The share coordinator forgets a share group's state of partitions; to forget what is not known is no error.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_state_request import Take, Told, answer_partitions, fine
from tailrace.broker.shares.share_states import ShareStates
from tailrace.protocol.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from tailrace.shares.state.share_state_coordinator import SharePartitionKey


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_states: ShareStates
) -> DeleteShareGroupStateResponse | None:
    body: DeleteShareGroupStateRequest = request.body

    def ask(key: SharePartitionKey, asked: DeleteShareGroupStateRequest.PartitionData, take: Take, now_ms: int) -> None:
        share_states.delete(key, fine(take), take, now_ms)

    def result(topic_id: bytes, partitions: list[Told]) -> DeleteShareGroupStateResponse.DeleteStateResult:
        return DeleteShareGroupStateResponse.DeleteStateResult(
            topic_id=topic_id, partitions=[DeleteShareGroupStateResponse.PartitionResult(**told) for told in partitions]
        )

    return answer_partitions(
        request,
        body.topics,
        ask,
        result,
        DeleteShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )
