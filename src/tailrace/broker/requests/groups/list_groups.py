"""ListGroups (key 16), versions 0–5.

Behaviour
    Returns the groups that this broker coordinates and that the client may describe.
Version notes
    4   states, and a filter by them
    5   types, and a filter by them
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.messages import ListGroupsRequest, ListGroupsResponse


def handle(request: Request, now_ms: int, *, groups: Groups, permissions: Permissions) -> Steps[ListGroupsResponse]:
    body: ListGroupsRequest = request.body
    runtime = groups.runtime
    if runtime.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {one.strip().lower() for one in body.states_filter}
    types = {one.lower() for one in body.types_filter}
    all_visible = permissions.allows(request, Operation.DESCRIBE, AclResource.CLUSTER, CLUSTER_NAME)
    response = ListGroupsResponse()
    for shard in runtime.active():
        for group in list(shard.list_groups(states, types)):
            if all_visible or permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group.group_id):
                response.groups.append(group)
            yield
        yield
    return response
