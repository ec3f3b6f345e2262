"""CreateTopics (key 19), versions 0–7.

Behaviour
    Makes topics, each by itself: one that is refused does not spoil the others. Answered when the metadata is durable
    and the partitions can be used. Counts towards controller_mutation_rate.
Version notes
    1   validate_only
    4   -1 partitions or replicas: the broker's default
    5   what was made: partitions, replicas, configs
    6   THROTTLING_QUOTA_EXCEEDED; before, all is done and the connection pauses
    7   topic ids
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.cluster.cluster_authorization import may_create
from tailrace.broker.security.authorizer import AclResource, Operation

_STRICT_FROM = 6


def handle(broker: Broker, request: Request, now_ms: int) -> None:
    quota = broker.throttling.mutations(request, now_ms, strict=request.version >= _STRICT_FROM)
    response = broker.local_controller.create_topics(
        request.body,
        now_ms,
        may_create=lambda name: may_create(broker, request, name),
        may_describe=lambda name: broker.sees(request, Operation.DESCRIBE_CONFIGS, AclResource.TOPIC, name),
        charge=quota.charge,
    )
    broker.publisher.when_hosted(lambda then_ms: broker.answer(request, response, then_ms, quota.throttle_ms), now_ms)
