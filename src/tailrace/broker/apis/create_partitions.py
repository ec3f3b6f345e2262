"""CreatePartitions (key 37), versions 0–3.

Behaviour
    Gives topics more partitions; never fewer.
"""

from __future__ import annotations

from tailrace.broker.authorizer import AclResource, Operation
from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.protocol.messages import CreatePartitionsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> CreatePartitionsResponse:
    return broker.controller.create_partitions(
        request.body,
        now_ms,
        may_alter=lambda name: broker.allows(request, Operation.ALTER, AclResource.TOPIC, name),
    )
