"""StreamsGroupDescribe (key 89), version 0.

Behaviour
    Returns epochs, topology and members of streams groups, with the current and the target tasks of each member. When
    all topics exist, the topology contains the resolved numbers of partitions.
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_description import GroupDescription
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.protocol.messages import StreamsGroupDescribeResponse


def _topics(group: StreamsGroupDescribeResponse.DescribedGroup) -> set[str]:
    topics: set[str] = set()
    for one in group.topology.subtopologies or () if group.topology is not None else ():
        topics.update(one.source_topics, one.repartition_sink_topics)
        topics.update(info.name for info in (*one.repartition_source_topics, *one.state_changelog_topics))
    return topics


_DESCRIPTION = GroupDescription(
    response=StreamsGroupDescribeResponse,
    described=StreamsGroupDescribeResponse.DescribedGroup,
    find=lambda shard, group_id: shard.streams.describe(group_id),
    topics=_topics,
    topics_refused="The described group uses topics that the client is not authorized to describe.",
    feature="streams",
)


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    _DESCRIPTION.handle(request, now_ms, authorizer=authorizer, groups=groups, permissions=permissions, replies=replies)
