"""CreateAcls (key 30), versions 1–3.

Behaviour
    Adds entries to the access control lists, each by itself; one that is there already counts as made. They count from
    the answer on. SECURITY_DISABLED where there is no authorizer.
Version notes
    1   patterns of resources
    2   flexible encoding
    3   resources of type USER
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.security.acl_requests import refusal_of_change
from tailrace.metadata.controller.control import NO_ERROR, ApiError
from tailrace.model.acls import UNKNOWN
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import CreateAclsRequest, CreateAclsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> CreateAclsResponse | None:
    body: CreateAclsRequest = request.body
    if any(map(_names_unknown, body.creations)):
        broker.reply_nothing(request, close=True)
        return None
    refused = refusal_of_change(broker, request)
    try:
        results = (
            broker.local_controller.create_acls(body, now_ms)
            if refused == NO_ERROR
            else [refused] * len(body.creations)
        )
    except KafkaError as error:
        results = [ApiError.of(error)] * len(body.creations)
    return CreateAclsResponse(results=[_result(one) for one in results])


def _names_unknown(one: CreateAclsRequest.AclCreation) -> bool:
    return UNKNOWN in (one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)


def _result(one: ApiError) -> CreateAclsResponse.AclCreationResult:
    if one == NO_ERROR:
        return CreateAclsResponse.AclCreationResult()
    return CreateAclsResponse.AclCreationResult(error_code=one.code, error_message=one.message)
