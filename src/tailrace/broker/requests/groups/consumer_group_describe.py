"""ConsumerGroupDescribe (key 69), versions 0–1.

Behaviour
    Returns epochs and members of consumer groups, with the current and the target assignment of each member. A classic
    group gets GROUP_ID_NOT_FOUND, and clients then use DescribeGroups.
Version notes
    1   the protocol of a member (classic or consumer)
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_description import GroupDescription
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.protocol.messages import ConsumerGroupDescribeResponse


def _topics(group: ConsumerGroupDescribeResponse.DescribedGroup) -> set[str]:
    assignments = (one for member in group.members for one in (member.assignment, member.target_assignment))
    return {topic.topic_name for one in assignments for topic in one.topic_partitions}


_DESCRIPTION = GroupDescription(
    response=ConsumerGroupDescribeResponse,
    described=ConsumerGroupDescribeResponse.DescribedGroup,
    find=lambda shard, group_id: shard.describe_consumers(group_id),
    topics=_topics,
    topics_refused="The group has described topic(s) that the client is not authorized to describe.",
    feature="consumer",
    may_be_empty=True,
)


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    _DESCRIPTION.handle(request, now_ms, authorizer=authorizer, groups=groups, permissions=permissions, replies=replies)
