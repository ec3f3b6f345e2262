"""Fetch (key 1) at a controller listener, versions 17–18.

Behaviour
    Returns batches of the metadata log to an observer, up to the high watermark, and waits if there are none. An
    observer that knows another epoch gets the leader and its epoch. One that is too far behind gets a snapshot's id.
Version notes
    18  the high watermark that the observer knows
"""

from __future__ import annotations

from tailrace.broker.cluster.observer_fetch import METADATA_CHANGED, ObserverFetch
from tailrace.broker.replies import Replies
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.quorum.served_log import is_metadata_topic
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import FetchRequest
from tailrace.waiting.purgatory import Purgatory

_WAIT_MS_MAX = 60_000


def handle(
    request: Request,
    now_ms: int,
    *,
    local_controller: LocalController,
    permissions: Permissions,
    purgatory: Purgatory,
    replies: Replies,
) -> None:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    body: FetchRequest = request.body
    served = local_controller.served_log
    if body.cluster_id not in (None, served.cluster_id):
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"the request has the cluster id {body.cluster_id}; this cluster has {served.cluster_id}",
        )
    if len(body.topics) != 1 or len(body.topics[0].partitions) != 1 or not is_metadata_topic(body.topics[0].topic_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a controller listener serves only partition 0 of the metadata")
    if body.max_wait_ms < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"max_wait_ms is {body.max_wait_ms}; it must be at least 0")
    asked = body.topics[0].partitions[0]
    local_controller.brokers.observed()
    served.note_fetch(body.replica_state.replica_id, asked, now_ms)
    deadline_ms = now_ms + min(body.max_wait_ms, _WAIT_MS_MAX)
    operation = ObserverFetch(request, asked, body.max_bytes, local_controller, replies, deadline_ms)
    if body.max_wait_ms == 0:
        operation.expire(now_ms)
    elif not purgatory.try_complete_or_watch(operation, [METADATA_CHANGED], now_ms):
        replies.parked(request.context, operation, request.client_id)
