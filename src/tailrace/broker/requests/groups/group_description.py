"""GroupDescription: common code of ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe.

The rights to each group are checked, and its coordinator shard describes it. The response has the groups in the order
of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import NOT_ASKED, AclResource, Authorizer, Operation, group_operations
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.model.errors import ErrorCode, KafkaError


class DescribedGroup(Protocol):
    authorized_operations: int


G = TypeVar("G", bound=DescribedGroup)


@dataclass(frozen=True, slots=True)
class GroupDescription(Generic[G]):
    """The differences between the requests for the three kinds of groups."""

    response: Callable[..., Any]
    described: Callable[..., G]
    find: Callable[[GroupCoordinator, str], G]
    topics: Callable[[G], Iterable[str]]  # topics that the client must be allowed to describe
    topics_refused: str  # the error message if the client is not allowed to
    feature: str | None = None  # the kind of group that must be enabled, if any
    may_be_empty: bool = False  # an empty group id is looked up like any other

    def handle(
        self,
        request: Request,
        now_ms: int,
        *,
        authorizer: Authorizer,
        groups: Groups,
        permissions: Permissions,
        replies: Replies,
    ) -> None:
        group_ids = request.body.group_ids
        respond = PendingAnswer(replies, request)
        merged: MergedParts[G] = MergedParts(
            len(group_ids), lambda found, now_ms: respond(self.response(groups=found), now_ms)
        )
        for index, group_id in enumerate(group_ids):
            answer = merged.part(index)
            problem = self._problem(request, group_id, groups, permissions)
            if problem is not None:
                answer(self.described(group_id=group_id, error_code=problem), now_ms)
            else:
                operations = authorized_operations(request, group_id, authorizer)
                self._describe(request, group_id, operations, answer, now_ms, groups, permissions)
        merged.begin(now_ms)

    def _problem(self, request: Request, group_id: str, groups: Groups, permissions: Permissions) -> ErrorCode | None:
        if self.feature is not None and not groups.is_enabled(self.feature):
            return ErrorCode.UNSUPPORTED_VERSION
        if not permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return None if group_id or self.may_be_empty else ErrorCode.INVALID_GROUP_ID

    def _describe(
        self,
        request: Request,
        group_id: str,
        operations: int,
        answer: Callable[[G, int], None],
        now_ms: int,
        groups: Groups,
        permissions: Permissions,
    ) -> None:
        def describe(shard: GroupCoordinator) -> G:
            group = self.find(shard, group_id)
            for topic in self.topics(group):
                if not permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic):
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.topics_refused)
            group.authorized_operations = operations
            return group

        def refuse(error: KafkaError, now_ms: int) -> None:
            answer(self.described(group_id=group_id, error_code=error.code, error_message=str(error)), now_ms)

        groups.read(group_id, describe, answer, refuse, now_ms)


def authorized_operations(request: Request, group_id: str, authorizer: Authorizer) -> int:
    """Return the operations that the client may do with a group, if the request asks for them."""
    if not request.body.include_authorized_operations:
        return NOT_ASKED
    return group_operations(authorizer, request.context.principal, request.context.client_host, group_id)
