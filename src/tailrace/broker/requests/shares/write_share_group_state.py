"""WriteShareGroupState (key 85), versions 0–1.

Behaviour
    A partition's leader tells what has become of records that a share group was given.
Version notes
    1   how many records behind the start offset are done with
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_state_request import Take, Told, answer_partitions, fine
from tailrace.broker.shares.share_states import ShareStates
from tailrace.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from tailrace.shares.state.share_state import state_batches
from tailrace.shares.state.share_state_coordinator import SharePartitionKey, ShareWrite


def handle(
    request: Request, now_ms: int, *, permissions: Permissions, replies: Replies, share_states: ShareStates
) -> WriteShareGroupStateResponse | None:
    body: WriteShareGroupStateRequest = request.body

    def ask(key: SharePartitionKey, asked: WriteShareGroupStateRequest.PartitionData, take: Take, now_ms: int) -> None:
        write = ShareWrite(
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            state_batches(asked.state_batches),
        )
        share_states.write(key, write, fine(take), take, now_ms)

    def result(topic_id: bytes, partitions: list[Told]) -> WriteShareGroupStateResponse.WriteStateResult:
        return WriteShareGroupStateResponse.WriteStateResult(
            topic_id=topic_id, partitions=[WriteShareGroupStateResponse.PartitionResult(**told) for told in partitions]
        )

    return answer_partitions(
        request,
        body.topics,
        ask,
        result,
        WriteShareGroupStateResponse,
        now_ms,
        permissions=permissions,
        replies=replies,
    )
