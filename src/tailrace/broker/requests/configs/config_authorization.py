"""refusal: checks the right to read or change configs. Brokers and metrics subscriptions need rights on the cluster."""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import ApiError
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.model.errors import ErrorCode


def refusal(
    request: Request, operation: Operation, resource: ConfigResource, *, permissions: Permissions
) -> ApiError | None:
    """Return the error if the client may not do the operation on the configs of a resource, else None."""
    if resource.type == ResourceType.TOPIC:
        kind, name, error = AclResource.TOPIC, resource.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif resource.type == ResourceType.GROUP:
        kind, name, error = AclResource.GROUP, resource.name, ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        kind, name, error = AclResource.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None if permissions.allows(request, operation, kind, name) else ApiError(error, "not authorized")
