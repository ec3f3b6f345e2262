"""Checks of rights on the cluster."""

from __future__ import annotations

from typing import Final

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode, KafkaError

REFUSED: Final = "the operation needs a right on the cluster"


def check_cluster(request: Request, operation: Operation, *, permissions: Permissions) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED if the client may not do the operation on the cluster."""
    if not permissions.allows(request, operation, AclResource.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, REFUSED)


def may_create(request: Request, topic: str, *, permissions: Permissions) -> bool:
    """Return True if the client may create topics in the cluster, or this topic."""
    return permissions.allows_silently(
        request, Operation.CREATE, AclResource.CLUSTER, CLUSTER_NAME
    ) or permissions.allows(request, Operation.CREATE, AclResource.TOPIC, topic)
