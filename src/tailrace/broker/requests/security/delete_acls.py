"""DeleteAcls (key 31), versions 1–3.

Behaviour
    Removes the entries of the access control lists that filters find, and tells them. They no longer count from the
    answer on. SECURITY_DISABLED where there is no authorizer.
Version notes
    1   patterns of resources
    2   flexible encoding
    3   resources of type USER
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.request_context import Request
from tailrace.broker.requests.security.acl_requests import names_unknown, refusal_of_change
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.control import NO_ERROR, ApiError
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.decisions.acls import filter_of
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import DeleteAclsRequest, DeleteAclsResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    local_controller: LocalController,
    permissions: Permissions,
    replies: Replies,
) -> DeleteAclsResponse | None:
    body: DeleteAclsRequest = request.body
    if any(names_unknown(filter_of(one)) for one in body.filters):
        replies.reply_nothing(request, now_ms, close=True)
        return None
    refused = refusal_of_change(request, authorizer=authorizer, permissions=permissions)
    if refused == NO_ERROR:
        try:
            return DeleteAclsResponse(filter_results=local_controller.delete_acls(body, now_ms))
        except KafkaError as error:
            refused = ApiError.of(error)
    result = DeleteAclsResponse.DeleteAclsFilterResult(error_code=refused.code, error_message=refused.message)
    return DeleteAclsResponse(filter_results=[result] * len(body.filters))
