"""OffsetCommit (key 8), versions 0–10.

Behaviour
    Commits offsets of a group. The client must be a member of the current generation, unless the group has no members.
    The response is sent when the commit is durable. Unknown partitions and metadata above the limit are refused one by
    one; the other partitions are committed. The offsets of a request are written as one batch. A request whose offsets
    do not fit into one batch is refused.
Version notes
    0   no generation and member; Kafka kept these offsets in ZooKeeper, Tailrace treats them like version 1
    1   the commit timestamp of the client
    2   the retention time (until version 4)
    6   leader epochs
    7   static members
    9   GROUP_ID_NOT_FOUND for a generation of an unknown group; before, ILLEGAL_GENERATION
    10  topic ids instead of names
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.replies import Replies
from tailrace.broker.requests.offsets.commit_plan import CommitPlan, refused
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group import Committer
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.coordinator.offsets.committed_offsets import Verdict
from tailrace.coordinator.shard import StateChange
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.flat.offset_commit import CommitAsk, CommitTopic, parts_of

TOPICS_PER_STEP: Final = 256  # a request with more topics pauses each time after this number


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
    throttling: Throttling,
) -> Steps[None] | None:
    """Handle an OffsetCommit whose body is a `CommitAsk`."""
    ask: CommitAsk = request.body
    commit = _Commit(request, replies, throttling)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, ask.group_id):
        commit.send(refused(ask.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED), now_ms)
        return None
    plan = CommitPlan(request, has_ids=True, controller=controller, permissions=permissions)
    if len(ask.topics) > TOPICS_PER_STEP:
        return _plan_in_steps(commit, plan, groups, now_ms)
    for topic in ask.topics:
        plan.add(topic)
    commit.write(plan, groups, now_ms)
    return None


def _plan_in_steps(commit: _Commit, plan: CommitPlan, groups: Groups, now_ms: int) -> Steps[None]:
    for number, topic in enumerate(commit.ask.topics, 1):
        plan.add(topic)
        if not number % TOPICS_PER_STEP:
            now_ms = yield
    commit.write(plan, groups, now_ms)


class _Commit:
    """One OffsetCommit request until its response."""

    __slots__ = ("_is_answered", "_now_ms", "_plan", "_replies", "_request", "_throttling", "ask")

    def __init__(self, request: Request, replies: Replies, throttling: Throttling) -> None:
        ask: CommitAsk = request.body  # does not refer to the receive buffer
        self._request = request
        self._replies = replies
        self._throttling = throttling
        self._is_answered = False
        self.ask = ask

    def write(self, plan: CommitPlan, groups: Groups, now_ms: int) -> None:
        """Write the planned commits at the group's coordinator."""
        if not plan.commits:
            self.send(plan.results(), now_ms)
            return
        self._plan = plan
        self._now_ms = now_ms
        groups.write(self.ask.group_id, self._change, self._finish, self._refuse, now_ms)

    def _change(self, shard: GroupCoordinator) -> StateChange[list[Verdict]]:
        ask = self.ask
        committer = Committer(ask.member_id, ask.instance_id, ask.generation, self._request.version)
        return shard.commits.commit(
            ask.group_id, committer, self._plan.commits, self._now_ms, retention_ms=ask.retention_ms
        )

    def _finish(self, verdicts: list[Verdict], now_ms: int) -> None:
        self._plan.finish(verdicts)
        self.send(self._plan.results(), now_ms)

    def _refuse(self, error: KafkaError, now_ms: int) -> None:
        if not self._is_answered:  # a coordinator may report a failure after its answer
            self._plan.refuse(error.code)
            self.send(self._plan.results(), now_ms)

    def send(self, topics: list[CommitTopic], now_ms: int) -> None:
        """Send the response, and count its error codes."""
        self._is_answered = True
        request, throttling = self._request, self._throttling
        throttle_ms = throttling.of_request(request, now_ms) if throttling.is_on else 0
        codes = self._replies.errors_of(request.api_key)
        for _, partitions, errors in topics:
            if isinstance(errors, list):
                for code in errors:
                    codes[code] += 1
            else:
                codes[errors] += len(partitions)
        encode = partial(parts_of, topics, request.version, request.correlation_id, throttle_ms)
        self._replies.answer_encoded(request, encode, now_ms, throttle_ms)
