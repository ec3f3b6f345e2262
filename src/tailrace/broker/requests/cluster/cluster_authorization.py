"""Rights on the cluster as a whole, and what they are good for."""

from __future__ import annotations

from typing import Final

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode, KafkaError

REFUSED: Final = "this takes a right on the cluster"


def check_cluster(request: Request, operation: Operation, *, permissions: Permissions) -> None:
    """CLUSTER_AUTHORIZATION_FAILED for a client that may not."""
    if not permissions.allows(request, operation, AclResource.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, REFUSED)


def may_create(request: Request, topic: str, *, permissions: Permissions) -> bool:
    """Whether a client may make a topic of that name: any, or this one."""
    return permissions.allows_silently(
        request, Operation.CREATE, AclResource.CLUSTER, CLUSTER_NAME
    ) or permissions.allows(request, Operation.CREATE, AclResource.TOPIC, topic)
