"""CreatePartitions (key 37), versions 0–3.

Behaviour
    Gives topics more partitions; never fewer. Counts towards controller_mutation_rate.
Version notes
    3   THROTTLING_QUOTA_EXCEEDED; before, all is done and the connection pauses
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation

_STRICT_FROM = 3


def handle(broker: Broker, request: Request, now_ms: int) -> None:
    quota = broker.throttling.mutations(request, now_ms, strict=request.version >= _STRICT_FROM)
    response = broker.local_controller.create_partitions(
        request.body,
        now_ms,
        may_alter=lambda name: broker.allows(request, Operation.ALTER, AclResource.TOPIC, name),
        charge=quota.charge,
    )
    broker.publisher.when_hosted(lambda then_ms: broker.answer(request, response, then_ms, quota.throttle_ms), now_ms)
