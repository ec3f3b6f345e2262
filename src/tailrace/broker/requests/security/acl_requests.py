"""Common code of DescribeAcls, CreateAcls and DeleteAcls: checks that refuse the whole request."""

from __future__ import annotations

from typing import Final

from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, AllowAll, Authorizer, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import NO_ERROR, ApiError
from tailrace.model.acls import UNKNOWN, Acl, AclFilter
from tailrace.model.errors import ErrorCode

NO_AUTHORIZER: Final = "No Authorizer is configured."


def has_authorizer(*, authorizer: Authorizer) -> bool:
    return not isinstance(authorizer, AllowAll)


def names_unknown(one: Acl | AclFilter) -> bool:
    """Return True if a field has the code for "unknown". Kafka closes the connection then, but not for a new code."""
    return UNKNOWN in (one.resource, one.pattern, one.operation, one.permission)


def refusal_of_change(request: Request, *, authorizer: Authorizer, permissions: Permissions) -> ApiError:
    """Return the error if the client may not change ACLs or there is no authorizer, else NO_ERROR."""
    if not permissions.allows(request, Operation.ALTER, AclResource.CLUSTER, CLUSTER_NAME):
        return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, REFUSED)
    if not has_authorizer(authorizer=authorizer):
        return ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return NO_ERROR
