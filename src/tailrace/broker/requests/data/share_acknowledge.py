"""ShareAcknowledge (key 79), versions 1–2.

Behaviour
    A member of a share group accepts, releases or rejects records that it has acquired. The response is sent when the
    result is persisted. The last request of a session (epoch -1) releases all records that the member still has.
Version notes
    2   renewal of locks; the duration of a lock
"""

from __future__ import annotations

from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_acknowledgements import Verdicts, acknowledge_all, session_key, topic_names
from tailrace.broker.shares.shares import Shares
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps
from tailrace.protocol.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from tailrace.replication.current_leader import LeaderNode, current_leader
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.shares.share_sessions import FINAL_EPOCH, INITIAL_EPOCH

_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    partitions: HostedPartitions,
    permissions: Permissions,
    replies: Replies,
    shares: Shares,
) -> Steps[ShareAcknowledgeResponse | None]:
    body: ShareAcknowledgeRequest = request.body
    try:
        key = session_key(request, permissions=permissions, shares=shares)
        epoch = body.share_session_epoch
        if epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        shares.sessions.continue_session(key, epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    pending = PendingAnswer(replies, request)
    names = topic_names(body.topics, controller=controller)
    listener = request.context.listener

    def answer(verdicts: Verdicts, now_ms: int) -> None:
        if epoch == FINAL_EPOCH:
            shares.release_session(key, now_ms)
        topics: dict[bytes, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
        nodes: dict[int, LeaderNode] = {}
        for partition, verdict in verdicts.items():
            result = ShareAcknowledgeResponse.PartitionData(
                partition_index=partition.partition, error_code=verdict.code, error_message=verdict.message
            )
            name = names[partition]
            if verdict.code in _LED_ELSEWHERE and name is not None:
                leader = current_leader(
                    TopicPartition(name, partition.partition), partitions, controller.image, listener
                )
                result.current_leader = ShareAcknowledgeResponse.LeaderIdAndEpoch(
                    leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
                )
                if leader.node is not None:
                    nodes[leader.leader_id] = leader.node
            topics.setdefault(
                partition.topic_id, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(topic_id=partition.topic_id)
            ).partitions.append(result)
        response = ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=shares.settings(key.group_id).record_lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                ShareAcknowledgeResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in nodes.values()
            ],
        )
        pending(response, now_ms)

    yield from acknowledge_all(
        request, key, body.topics, answer, now_ms, controller=controller, permissions=permissions, shares=shares
    )
    return None
