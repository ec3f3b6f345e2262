"""CreatePartitions (key 37), versions 0–3.

Behaviour
    Gives topics more partitions; never fewer. Counts towards controller_mutation_rate.
Version notes
    3   THROTTLING_QUOTA_EXCEEDED; before, all partitions are created and the connection pauses
"""

from __future__ import annotations

from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.steps import Steps

_STRICT_FROM = 3


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
    response = yield from local_controller.topics.begin_create_partitions(
        request.body,
        now_ms,
        may_alter=lambda name: permissions.allows(request, Operation.ALTER, AclResource.TOPIC, name),
        charge=quota.charge,
    )
    publisher.when_hosted(
        [one.name for one in response.results],
        lambda then_ms: replies.answer(request, response, then_ms, quota.throttle_ms),
        now_ms,
    )
