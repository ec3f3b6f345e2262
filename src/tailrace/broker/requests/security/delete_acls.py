"""DeleteAcls (key 31), versions 1–3.

Behaviour
    Deletes the ACLs that match the filters, and returns them. They are no longer in force when the response is sent.
    Without an authorizer the error is SECURITY_DISABLED.
Version notes
    1   patterns of resources
    2   flexible encoding
    3   resources of type USER
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.acl_requests import names_unknown, refusal_of_change
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control_state import NO_ERROR, ApiError
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.decisions.acls import filter_of, match_acls
from tailrace.model.errors import KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.messages import DeleteAclsRequest, DeleteAclsResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    local_controller: LocalController,
    permissions: Permissions,
    replies: Replies,
) -> DeleteAclsResponse | Steps[DeleteAclsResponse] | None:
    body: DeleteAclsRequest = request.body
    if any(names_unknown(filter_of(one)) for one in body.filters):
        replies.reply_nothing(request, now_ms, close=True)
        return None
    refused = refusal_of_change(request, authorizer=authorizer, permissions=permissions)
    if refused == NO_ERROR:
        return _delete(body, local_controller, now_ms)
    return _refused(body, refused)


def _delete(body: DeleteAclsRequest, controller: LocalController, now_ms: int) -> Steps[DeleteAclsResponse]:
    """Match all filters first, with pauses, then delete the matching ACLs."""
    try:
        found, results = yield from match_acls(controller.image, body.filters)
        controller.remove_acls(found, now_ms)
    except KafkaError as error:
        return _refused(body, ApiError.of(error))
    return DeleteAclsResponse(filter_results=results)


def _refused(body: DeleteAclsRequest, refused: ApiError) -> DeleteAclsResponse:
    result = DeleteAclsResponse.DeleteAclsFilterResult(error_code=refused.code, error_message=refused.message)
    return DeleteAclsResponse(filter_results=[result] * len(body.filters))
