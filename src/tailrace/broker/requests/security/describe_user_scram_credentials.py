"""DescribeUserScramCredentials (key 50), version 0.

Behaviour
    Returns the users with SCRAM credentials, their mechanisms and iteration counts. Salts and keys are not returned.
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.scram_credentials import describe_credentials
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse


def handle(
    request: Request, now_ms: int, *, controller: Controller, permissions: Permissions
) -> DescribeUserScramCredentialsResponse:
    if not permissions.allows(request, Operation.DESCRIBE, AclResource.CLUSTER, CLUSTER_NAME):
        return _denied(request.body)
    return describe_credentials(controller.image, request.body)


def _denied(body: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    """Return the error once for each requested user, without names, as Kafka does."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    response = DescribeUserScramCredentialsResponse
    result = response.DescribeUserScramCredentialsResult(error_code=code, error_message=None)
    return response(error_code=code, error_message=None, results=[result] * len(body.users or []))
