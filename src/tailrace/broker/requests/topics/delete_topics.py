"""DeleteTopics (key 20), versions 0–6.

Behaviour
    Topics go at once; their files a little later (file.delete.delay.ms). Counts towards controller_mutation_rate.
Version notes
    5   error messages; THROTTLING_QUOTA_EXCEEDED, before, all is done and the connection pauses
    6   by topic id as well
"""

from __future__ import annotations

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import DeleteTopicsRequest

_STRICT_FROM = 5
_STATES_FROM = first_version_with("DeleteTopicsRequest", "topics")


def handle(
    request: Request,
    now_ms: int,
    *,
    config: BrokerConfig,
    local_controller: LocalController,
    permissions: Permissions,
    replies: Replies,
    throttling: Throttling,
) -> None:
    body: DeleteTopicsRequest = request.body
    if not config.flag("delete.topic.enable"):
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if request.version >= 3 else ErrorCode.INVALID_REQUEST,
            "topic deletion is disabled",
        )
    if request.version < _STATES_FROM:
        body.topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in body.topic_names]
        body.topic_names = []
    may_delete_all = permissions.allows_silently(request, Operation.DELETE, AclResource.CLUSTER, CLUSTER_NAME)
    quota = throttling.mutations(request, now_ms, strict=request.version >= _STRICT_FROM)
    response = local_controller.delete_topics(
        body,
        now_ms,
        may_describe=lambda name: (
            may_delete_all or permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, name)
        ),
        may_delete=lambda name: (
            may_delete_all or permissions.allows(request, Operation.DELETE, AclResource.TOPIC, name)
        ),
        charge=quota.charge,
    )
    replies.answer(request, response, now_ms, quota.throttle_ms)
