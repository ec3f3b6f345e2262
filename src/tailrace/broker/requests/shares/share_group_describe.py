"""ShareGroupDescribe (key 77), version 1.

Behaviour
    Returns epochs and members of share groups, with the assignment of each member. A group of another type gets
    GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_description import GroupDescription
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_group_state import check_share_groups
from tailrace.metadata.controller.controller import Controller
from tailrace.protocol.messages import ShareGroupDescribeResponse


def _topics(group: ShareGroupDescribeResponse.DescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


_DESCRIPTION = GroupDescription(
    response=ShareGroupDescribeResponse,
    described=ShareGroupDescribeResponse.DescribedGroup,
    find=lambda shard, group_id: shard.shares.describe(group_id),
    topics=_topics,
    topics_refused="The group has described topic(s) that the client is not authorized to describe.",
)


def handle(
    request: Request,
    now_ms: int,
    *,
    authorizer: Authorizer,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
) -> None:
    check_share_groups(controller=controller)
    _DESCRIPTION.handle(request, now_ms, authorizer=authorizer, groups=groups, permissions=permissions, replies=replies)
