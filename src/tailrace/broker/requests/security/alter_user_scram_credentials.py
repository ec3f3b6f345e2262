"""AlterUserScramCredentials (key 51), version 0.

Behaviour
    Sets and removes SCRAM credentials. Each user has its own result. The client does not send the password: it sends
    the salted password of SCRAM, and the metadata stores two keys that are derived from it.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import ApiError
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.decisions.scram_credentials import refuse_all
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import AlterUserScramCredentialsResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> AlterUserScramCredentialsResponse:
    if not permissions.allows(request, Operation.ALTER, AclResource.CLUSTER, CLUSTER_NAME):
        return refuse_all(request.body, ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, REFUSED))
    return local_controller.alter_scram_credentials(request.body, now_ms)
