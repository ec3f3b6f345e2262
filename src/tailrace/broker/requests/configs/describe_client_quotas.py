"""DescribeClientQuotas (key 48), versions 0–1.

Behaviour
    Returns the quotas of users, client ids and addresses that match a filter: an exact name, the default, or any name.
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.client_quotas import describe_client_quotas
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.messages import DescribeClientQuotasResponse


def handle(
    request: Request, now_ms: int, *, controller: Controller, permissions: Permissions
) -> Steps[DescribeClientQuotasResponse]:
    if not permissions.allows(request, Operation.DESCRIBE_CONFIGS, AclResource.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)
    try:
        return (yield from describe_client_quotas(controller.image, request.body))
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
