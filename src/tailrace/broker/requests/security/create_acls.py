"""CreateAcls (key 30), versions 1–3.

Behaviour
    Creates ACLs, each with its own result. An existing ACL is not an error. The ACLs are in force when the response is
    sent. Without an authorizer the error is SECURITY_DISABLED.
Version notes
    1   patterns of resources
    2   flexible encoding
    3   resources of type USER
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.acl_requests import refusal_of_change
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import NO_ERROR, ApiError
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.acls import UNKNOWN
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import CreateAclsRequest, CreateAclsResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    local_controller: LocalController,
    permissions: Permissions,
    replies: Replies,
) -> CreateAclsResponse | None:
    body: CreateAclsRequest = request.body
    if any(map(_names_unknown, body.creations)):
        replies.reply_nothing(request, now_ms, close=True)
        return None
    refused = refusal_of_change(request, authorizer=authorizer, permissions=permissions)
    try:
        results = local_controller.create_acls(body, now_ms) if refused == NO_ERROR else [refused] * len(body.creations)
    except KafkaError as error:
        results = [ApiError.of(error)] * len(body.creations)
    return CreateAclsResponse(results=[_result(one) for one in results])


def _names_unknown(one: CreateAclsRequest.AclCreation) -> bool:
    return UNKNOWN in (one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)


def _result(one: ApiError) -> CreateAclsResponse.AclCreationResult:
    if one == NO_ERROR:
        return CreateAclsResponse.AclCreationResult()
    return CreateAclsResponse.AclCreationResult(error_code=one.code, error_message=one.message)
