"""AlterClientQuotas (key 49), versions 0–1.

Behaviour
    Sets and removes the quotas of users, client ids and addresses. Each entity has its own result.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> AlterClientQuotasResponse:
    if not permissions.allows(request, Operation.ALTER_CONFIGS, AclResource.CLUSTER, CLUSTER_NAME):
        return _denied(request.body)
    return local_controller.alter_client_quotas(request.body, now_ms)


def _denied(body: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponse.EntryData(
                error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                error_message=REFUSED,
                entity=[
                    AlterClientQuotasResponse.EntityData(entity_type=one.entity_type, entity_name=one.entity_name)
                    for one in entry.entity
                ],
            )
            for entry in body.entries
        ]
    )
