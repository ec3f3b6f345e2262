"""AlterClientQuotas (key 49), versions 0–1.

Behaviour
    Sets and removes the quotas of users, client ids and addresses, each entity by itself.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def handle(broker: Broker, request: Request, now_ms: int) -> AlterClientQuotasResponse:
    if not broker.allows(request, Operation.ALTER_CONFIGS, AclResource.CLUSTER, CLUSTER_NAME):
        return _denied(request.body)
    return broker.local_controller.alter_client_quotas(request.body, now_ms)


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
