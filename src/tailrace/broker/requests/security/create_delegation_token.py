"""CreateDelegationToken (key 38), versions 1–3.

Behaviour
    Creates a token with which its owner can log in until it expires. Every client may create tokens for itself. A token
    for another owner needs the right CREATE_TOKENS on that user.
Version notes
    3   tokens for other owners
"""

from __future__ import annotations

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.token_requests import NO_TIME, check_connection
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.decisions.delegation_tokens import USER, owner_of
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import CreateDelegationTokenResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    config: BrokerConfig,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
) -> CreateDelegationTokenResponse | None:
    requester = request.context.principal
    owner = owner_of(request.body, requester)
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=NO_TIME, expiry_timestamp_ms=NO_TIME, max_timestamp_ms=NO_TIME
    )
    response.principal_type, _, response.principal_name = owner.partition(":")
    if request.version >= 3:
        response.token_requester_principal_type, _, response.token_requester_principal_name = requester.partition(":")
    try:
        check_connection(request, config=config)
        if owner != requester and not permissions.allows(request, Operation.CREATE_TOKENS, AclResource.USER, owner):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if any(one.principal_type != USER for one in request.body.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except KafkaError as error:
        response.error_code = error.code
        return response
    if forwarding is not None:
        forwarding.forward(request, now_ms)
        return None
    assert local_controller is not None, "a broker that does not forward has a local controller"
    try:
        token = local_controller.tokens.create(request.body, requester, now_ms)
    except KafkaError as error:
        response.error_code = error.code
        response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = 0  # as Kafka does
        return response
    response.issue_timestamp_ms = token.issue_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.max_timestamp_ms = token.max_timestamp
    response.token_id = token.token_id
    response.hmac = config.tokens.hmac_of(token.token_id)
    return response
