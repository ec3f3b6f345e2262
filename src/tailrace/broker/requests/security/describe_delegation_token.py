"""DescribeDelegationToken (key 41), versions 1–3.

Behaviour
    Returns all tokens, or the tokens of the given owners and renewers. A client sees the tokens that it owns or may
    renew. Other tokens need the right DESCRIBE on the token, or DESCRIBE_TOKENS on its owner.
Version notes
    3   the principal that requested a token
"""

from __future__ import annotations

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.token_requests import check_connection
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.delegation_tokens import is_owner_or_renewer
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.messages import DelegationTokenRecord, DescribeDelegationTokenResponse

Described = DescribeDelegationTokenResponse.DescribedDelegationToken
Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer


def handle(
    request: Request, now_ms: int, *, config: BrokerConfig, controller: Controller, permissions: Permissions
) -> Steps[DescribeDelegationTokenResponse]:
    check_connection(request, config=config)
    settings = config.tokens
    if not settings.is_enabled:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    asked = request.body.owners
    owners = None if asked is None else {f"{one.principal_type}:{one.principal_name}" for one in asked}
    response = DescribeDelegationTokenResponse()
    for token in controller.image.delegation_tokens.values():
        if _is_asked_for(token, owners) and _may_describe(request, token, permissions=permissions):
            response.tokens.append(_described(token, settings.hmac_of(token.token_id), request.version))
        yield
    return response


def _is_asked_for(token: DelegationTokenRecord, owners: set[str] | None) -> bool:
    return owners is None or token.owner in owners or not owners.isdisjoint(token.renewers)


def _may_describe(request: Request, token: DelegationTokenRecord, *, permissions: Permissions) -> bool:
    return (
        is_owner_or_renewer(token, request.context.principal)
        or permissions.allows_silently(request, Operation.DESCRIBE, AclResource.DELEGATION_TOKEN, token.token_id)
        or permissions.allows_silently(request, Operation.DESCRIBE_TOKENS, AclResource.USER, token.owner)
    )


def _described(token: DelegationTokenRecord, hmac: bytes, version: int) -> Described:
    owner_type, _, owner = token.owner.partition(":")
    requester_type, _, requester = token.requester.partition(":") if version >= 3 else ("", "", "")
    renewers = [one.partition(":") for one in token.renewers]
    return Described(
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[Renewer(principal_type=kind, principal_name=name) for kind, _, name in renewers],
    )
