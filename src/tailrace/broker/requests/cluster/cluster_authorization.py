"""Rights on the cluster as a whole, and what they are good for."""

from __future__ import annotations

from typing import Final

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.model.errors import ErrorCode, KafkaError

REFUSED: Final = "this takes a right on the cluster"


def check_cluster(broker: Broker, request: Request, operation: Operation) -> None:
    """CLUSTER_AUTHORIZATION_FAILED for a client that may not."""
    if not broker.allows(request, operation, AclResource.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, REFUSED)


def may_create(broker: Broker, request: Request, topic: str) -> bool:
    """Whether a client may make a topic of that name: any, or this one."""
    return broker.sees(request, Operation.CREATE, AclResource.CLUSTER, CLUSTER_NAME) or broker.allows(
        request, Operation.CREATE, AclResource.TOPIC, topic
    )
