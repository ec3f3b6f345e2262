"""DescribeAcls (key 29), versions 1–3.

Behaviour
    Returns the ACLs that match a filter, by resource, from the metadata of this broker. Without an authorizer the error
    is SECURITY_DISABLED.
Version notes
    1   patterns of resources
    2   flexible encoding
    3   resources of type USER
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.acl_requests import NO_AUTHORIZER, has_authorizer, names_unknown
from tailrace.broker.security.authorizer import Authorizer, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.acls import describe_acls, filter_of
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.acls import AclFilter
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.messages import DescribeAclsResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    controller: Controller,
    permissions: Permissions,
    replies: Replies,
) -> Steps[DescribeAclsResponse] | None:
    wanted = filter_of(request.body)
    if names_unknown(wanted):
        replies.reply_nothing(request, now_ms, close=True)
        return None
    check_cluster(request, Operation.DESCRIBE, permissions=permissions)
    if not has_authorizer(authorizer=authorizer):
        raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return _describe(controller.image, wanted)


def _describe(image: MetadataImage, wanted: AclFilter) -> Steps[DescribeAclsResponse]:
    resources = yield from describe_acls(image, wanted)
    return DescribeAclsResponse(resources=resources)
