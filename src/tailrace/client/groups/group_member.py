"""GroupMember: a member of a consumer group, with the classic protocol and the assignor `range`.

    with GroupMember(coordinators, "billing", "orders") as member:
        member.keep_alive()             joins, or rejoins after a rebalance; sends heartbeats
        member.partitions               the partitions that this member reads
        member.commit({partition: 17})

The member has no thread. Its caller must call `keep_alive` more often than the session timeout. The end of the `with`
block leaves the group, so that the other members get the partitions at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final

from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import ClientError, InvalidAnswer, Refused
from tailrace.client.groups.group_offsets import OffsetAndMetadata, commit_offsets
from tailrace.client.network.retry_budget import Clock, SystemClock
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

SESSION_TIMEOUT_MS: Final = 10_000
HEARTBEAT_S: Final = 3.0
ASSIGNOR: Final = "range"
PROTOCOL: Final = "consumer"
_VERSION: Final = Struct(">h")
_EMBEDDED_VERSION: Final = 0
_NO_GENERATION: Final = -1
# The member has to join again. After the first two it must do so as a new member.
_NEW_MEMBER: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
_REJOIN: Final = (*_NEW_MEMBER, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


class GroupMember:
    def __init__(self, coordinators: Coordinators, group: str, topic: str, *, clock: Clock | None = None) -> None:
        self.partitions: list[TopicPartition] = []
        self._coordinators = coordinators
        self._group = group
        self._topic = topic
        self._clock = clock or SystemClock()
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._next_heartbeat_s = 0.0

    def __enter__(self) -> GroupMember:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(ClientError):  # the group removes a silent member after its session timeout
            self._leave()

    def keep_alive(self) -> bool:
        """Join, or send a heartbeat if one is due. Return True if the assignment is new."""
        if self._generation != _NO_GENERATION and self._clock.monotonic() < self._next_heartbeat_s:
            return False
        if self._generation != _NO_GENERATION and self._send_heartbeat():
            return False
        while not self._join():
            pass
        self._next_heartbeat_s = self._clock.monotonic() + HEARTBEAT_S
        return True

    def commit(self, offsets: Mapping[TopicPartition, Offset]) -> bool:
        """Commit offsets. Return False if a rebalance has taken the partitions away."""
        noted = {one: OffsetAndMetadata(offset, "") for one, offset in offsets.items()}
        try:
            commit_offsets(
                self._coordinators, self._group, noted, generation=self._generation, member_id=self._member_id
            )
        except Refused as refused:
            if not self._is_rejoin(refused.code):
                raise
            return False
        return True

    def _is_rejoin(self, code: int) -> bool:
        """Return True if the code asks the member to join again, and prepare that."""
        if code not in _REJOIN:
            return False
        if code in _NEW_MEMBER:
            self._member_id = ""
        self._generation = _NO_GENERATION
        return True

    def _raise_unless_rejoin(self, code: int) -> None:
        if code and not self._is_rejoin(code):
            raise Refused(f"group {self._group}", code)

    def _send_heartbeat(self) -> bool:
        """Return True if the assignment is still valid."""
        request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
        codes: list[int] = []

        def check(answer: HeartbeatResponse) -> None:
            codes[:] = [answer.error_code]
            self._raise_unless_rejoin(answer.error_code)

        self._coordinators.ask(CoordinatorKind.GROUP, self._group, request, check)
        self._next_heartbeat_s = self._clock.monotonic() + HEARTBEAT_S
        return not codes[0]

    def _join(self) -> bool:
        """Join and synchronize. Return False if the group has started another rebalance in the meantime."""
        subscription = ConsumerProtocolSubscription(topics=[self._topic])
        metadata = _VERSION.pack(_EMBEDDED_VERSION) + subscription.encode(_EMBEDDED_VERSION)
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=self._coordinators.cluster.settings.request_timeout_ms,
            member_id=self._member_id,
            protocol_type=PROTOCOL,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=ASSIGNOR, metadata=metadata)],
        )

        def check(answer: JoinGroupResponse) -> None:
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._raise_unless_rejoin(answer.error_code)

        answer: JoinGroupResponse = self._coordinators.ask(CoordinatorKind.GROUP, self._group, request, check)
        if answer.error_code:
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = answer.member_id
            return False
        self._member_id = answer.member_id
        return self._synchronize(answer)

    def _synchronize(self, joined: JoinGroupResponse) -> bool:
        plan: dict[str, list[TopicPartition]] = {}
        if joined.leader == joined.member_id:
            plan = self._assign({one.member_id: _topics(one.metadata) for one in joined.members})
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            protocol_type=PROTOCOL,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=_encoded(partitions))
                for member_id, partitions in plan.items()
            ],
        )

        def check(answer: SyncGroupResponse) -> None:
            self._raise_unless_rejoin(answer.error_code)

        answer: SyncGroupResponse = self._coordinators.ask(CoordinatorKind.GROUP, self._group, request, check)
        if answer.error_code:
            return False
        self._generation = joined.generation_id
        self.partitions = sorted(_assigned(answer.assignment))
        return True

    def _assign(self, members: Mapping[str, Iterable[str]]) -> dict[str, list[TopicPartition]]:
        """Return the assignment of all members: of each topic, consecutive partitions to members by their ids."""
        plan: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        for topic in sorted({topic for topics in members.values() for topic in topics}):
            readers = sorted(member_id for member_id, topics in members.items() if topic in topics)
            partitions = self._partitions_of(topic)
            share, rest = divmod(len(partitions), len(readers))
            start = 0
            for number, member_id in enumerate(readers):
                end = start + share + (number < rest)
                plan[member_id] += partitions[start:end]
                start = end
        return plan

    def _partitions_of(self, topic: str) -> list[TopicPartition]:
        try:
            return self._coordinators.cluster.topic(topic).topic_partitions
        except ClientError:
            if topic == self._topic:
                raise
            return []  # another member's topic may be missing, or hidden from this client

    def _leave(self) -> None:
        if not self._member_id:
            return
        request = LeaveGroupRequest(
            group_id=self._group, members=[LeaveGroupRequest.MemberIdentity(member_id=self._member_id)]
        )
        self._coordinators.ask(CoordinatorKind.GROUP, self._group, request, lambda answer: None, version_min=3)
        self._member_id = ""


def _topics(metadata: bytes) -> list[str]:
    """Return the topics of a member's subscription. Clients write it, so it may be malformed."""
    try:
        return list(ConsumerProtocolSubscription.read(bytes(metadata), _EMBEDDED_VERSION, _VERSION.size)[0].topics)
    except ProtocolError:
        return []


def _encoded(partitions: Iterable[TopicPartition]) -> bytes:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=found) for topic, found in numbers.items()
        ]
    )
    return _VERSION.pack(_EMBEDDED_VERSION) + assignment.encode(_EMBEDDED_VERSION)


def _assigned(data: bytes) -> list[TopicPartition]:
    if not data:
        return []
    try:
        opened, _ = ConsumerProtocolAssignment.read(bytes(data), _EMBEDDED_VERSION, _VERSION.size)
    except ProtocolError as error:
        raise InvalidAnswer(f"the assignment that the leader of the group made cannot be decoded: {error}") from error
    return [TopicPartition(one.topic, number) for one in opened.assigned_partitions for number in one.partitions]
