"""DeleteTopics (key 20), versions 0–6.

Behaviour
    Deletes topics at once, and their files after file.delete.delay.ms. Counts towards controller_mutation_rate.
Version notes
    5   error messages; THROTTLING_QUOTA_EXCEEDED; before, all topics are deleted and the connection pauses
    6   deletion by topic id
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

PARTITIONS_AT_ONCE = 1_000  # partitions that are deleted without a pause, unless one topic has more
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
) -> Steps[None]:
    body: DeleteTopicsRequest = request.body
    if not config.flag("delete.topic.enable"):
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if request.version >= 3 else ErrorCode.INVALID_REQUEST,
            "topics cannot be deleted: delete.topic.enable is false on this broker",
        )
    if request.version < _STATES_FROM:
        body.topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in body.topic_names]
        body.topic_names = []
    may_delete_all = permissions.allows_silently(request, Operation.DELETE, AclResource.CLUSTER, CLUSTER_NAME)
    quota = throttling.mutations(request, now_ms, strict=request.version >= _STRICT_FROM)
    response = DeleteTopicsResponse()
    for topics in _groups(body.topics, local_controller.image):
        if response.responses:
            now_ms = yield
        deleted = local_controller.delete_topics(
            DeleteTopicsRequest(topics=topics, timeout_ms=body.timeout_ms),
            now_ms,
            may_describe=lambda name: (
                may_delete_all or permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, name)
            ),
            may_delete=lambda name: (
                may_delete_all or permissions.allows(request, Operation.DELETE, AclResource.TOPIC, name)
            ),
            charge=quota.charge,
        )
        response.responses += deleted.responses
    replies.answer(request, response, now_ms, quota.throttle_ms)


def _groups(topics: Sequence[Any], image: MetadataImage) -> list[list[Any]]:
    """Return the topics that are deleted without a pause: all, or each alone if they have many partitions.

    A topic that is given more than once is refused, so it is in one group.
    """
    partitions = 0
    by_topic: dict[object, list[Any]] = {}
    for one in topics:
        known = image.topics.get(one.name) or image.topics_by_id.get(one.topic_id)
        partitions += len(known.partitions) if known is not None else 0
        by_topic.setdefault(known.id if known is not None else (one.name, one.topic_id), []).append(one)
    return [list(topics)] if partitions <= PARTITIONS_AT_ONCE else list(by_topic.values())
