"""CreateTopics (key 19), versions 0–7.

Behaviour
    Makes topics, each by itself: one that is refused does not spoil the others. The response is sent when the metadata
    is durable and the partitions can be used, or five seconds later if there are very many. Counts
    towards controller_mutation_rate.
Version notes
    1   validate_only
    4   -1 partitions or replicas: the broker's default
    5   what was made: partitions, replicas, configs
    6   THROTTLING_QUOTA_EXCEEDED; before, all is done and the connection pauses
    7   topic ids
"""

from __future__ import annotations

from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.cluster.cluster_authorization import may_create
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.steps import Steps

_STRICT_FROM = 6


def handle(
    request: Request,
    now_ms: int,
    *,
    local_controller: LocalController,
    permissions: Permissions,
    publisher: ImagePublisher,
    replies: Replies,
    throttling: Throttling,
) -> Steps[None]:
    quota = throttling.mutations(request, now_ms, strict=request.version >= _STRICT_FROM)
    response = yield from local_controller.topics.begin_create_topics(
        request.body,
        now_ms,
        may_create=lambda name: may_create(request, name, permissions=permissions),
        may_describe=lambda name: permissions.allows_silently(
            request, Operation.DESCRIBE_CONFIGS, AclResource.TOPIC, name
        ),
        charge=quota.charge,
    )
    publisher.when_hosted(
        [one.name for one in response.topics],
        lambda then_ms: replies.answer(request, response, then_ms, quota.throttle_ms),
        now_ms,
    )
