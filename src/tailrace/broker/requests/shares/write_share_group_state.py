"""WriteShareGroupState (key 85), versions 0–1.

Behaviour
    Stores the delivery states of a share group's records, sent by the leader of the partition.
Version notes
    1   the number of records after the start offset whose delivery is complete
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.share_state_request import OnResult, ResultFields, answer_partitions, on_success
from tailrace.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from tailrace.shares.state.persisted_state import SharePartitionKey, ShareWrite, state_batches


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_coordinator: ShareCoordinator
) -> WriteShareGroupStateResponse | None:
    body: WriteShareGroupStateRequest = request.body

    def write(
        key: SharePartitionKey, asked: WriteShareGroupStateRequest.PartitionData, on_result: OnResult, now_ms: int
    ) -> None:
        state = ShareWrite(
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            state_batches(asked.state_batches),
        )
        share_coordinator.write(key, state, on_success(on_result), on_result, now_ms)

    def result(topic_id: bytes, partitions: list[ResultFields]) -> WriteShareGroupStateResponse.WriteStateResult:
        return WriteShareGroupStateResponse.WriteStateResult(
            topic_id=topic_id,
            partitions=[WriteShareGroupStateResponse.PartitionResult(**fields) for fields in partitions],
        )

    return answer_partitions(
        request,
        body.topics,
        write,
        result,
        WriteShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )
