"""ClassicGroup: the members of a classic group, its leader, protocol and state.

    EMPTY                → PREPARING_REBALANCE    a member joins
    PREPARING_REBALANCE  → COMPLETING_REBALANCE   all members have (re)joined, or the time is up
                         → EMPTY                  no member is left
    COMPLETING_REBALANCE → STABLE                 the leader has sent the assignment
                         → PREPARING_REBALANCE    a member joins, leaves, fails or changes
    STABLE               → PREPARING_REBALANCE    a member joins, leaves, fails or changes
    every state          → DEAD                   deleted, or coordinated by another broker; final

Invariants
    1. `leader_id` is a member, or None without members.
    2. `waiting_to_join` is the number of members whose JoinGroup is unanswered. Only this class changes
       `ClassicMember.awaiting_join`.
    3. Every member supports `protocol` in COMPLETING_REBALANCE and STABLE.
    4. An instance id belongs to one member id, the latest. Older member ids are fenced (`static_members.py`).

Requests and timers change a group through `classic_join.py`, `classic_membership.py` and `classic_rebalance.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from tailrace.coordinator.groups.classic.classic_member import ClassicMember, JoinAnswer, Protocols
from tailrace.coordinator.groups.classic.static_members import StaticMembers, fence
from tailrace.coordinator.groups.group import Committer, IdleSince, TopicCommit
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.java.java_order import hash_map_order
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import (
    ConsumerProtocolSubscription,
    DescribeGroupsResponse,
    GroupMetadataKey,
    JoinGroupResponse,
    ListGroupsResponse,
)

CONSUMER_PROTOCOL = "consumer"  # the protocol type of consumers
_VERSION_SIZE = 2


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

_FROM = {
    EMPTY: (PREPARING,),
    PREPARING: (STABLE, COMPLETING, EMPTY),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
    DEAD: (STABLE, PREPARING, COMPLETING, EMPTY, DEAD),
}


class ClassicGroup:
    def __init__(self, group_id: str, now_ms: int) -> None:
        self._group_id = group_id
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members = StaticMembers()
        self.pending: set[str] = set()  # member ids that were returned with MEMBER_ID_REQUIRED and have not joined yet
        self.pending_sync: set[str] = set()  # members of this generation that have not sent SyncGroup yet
        self.waiting_to_join = 0
        self.has_new_member = False  # since the first rebalance was last delayed
        self.subscribed_topics: frozenset[str] | None = None  # None: unknown
        self._supported: Counter[str] = Counter()  # protocol → number of members that support it

    @property
    def group_id(self) -> str:
        return self._group_id

    @property
    def type(self) -> str:
        return "classic"

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    # States

    def move_to(self, state: GroupState, now_ms: int) -> None:
        assert self.state in _FROM[state], f"group {self.group_id} cannot go from {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return self.state in _FROM[PREPARING]

    def take_new_member_flag(self) -> bool:
        """Return True if a new member has joined the first rebalance since the last call. Clear the flag."""
        has_new_member, self.has_new_member = self.has_new_member, False
        return has_new_member

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == self.waiting_to_join and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation with the members that have joined. Without members the group becomes empty."""
        self.generation += 1
        self.protocol = self.chosen_protocol() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.move_to(COMPLETING if self.members else EMPTY, now_ms)
        self.pending_sync.clear()

    # Members

    def add(self, member: ClassicMember, protocol_type: str, answer: JoinAnswer | None) -> None:
        """Add a member. The first one decides the protocol type of the group."""
        if member.instance_id is not None:
            self.static_members.add(member.instance_id, member.member_id)
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.is_new and self.state is PREPARING and self.previous_state is EMPTY:
            self.has_new_member = True
        self.members[member.member_id] = member
        self._supported.update({name for name, _ in member.protocols})
        member.wait_to_join(answer)
        if answer is not None:
            self.waiting_to_join += 1
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member id."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supported.subtract({name for name, _ in member.protocols})
            if member.awaiting_join is not None:
                self.waiting_to_join -= 1
            if member.instance_id is not None:
                self.static_members.remove(member.instance_id)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        answer: JoinAnswer | None,
    ) -> None:
        """Update a member that joins again."""
        self._supported.subtract({name for name, _ in member.protocols})
        member.update(protocols, rebalance_timeout_ms, session_timeout_ms)
        self._supported.update({name for name, _ in member.protocols})
        self.waiting_to_join += (answer is not None) - (member.awaiting_join is not None)
        member.wait_to_join(answer)

    def replace_static(self, instance_id: str, old_id: str, new_id: str, now_ms: int) -> ClassicMember:
        """Give a static member that has restarted its new id. Requests with the old id are fenced."""
        old = self.members.pop(old_id)
        if old.awaiting_join is not None:
            self.waiting_to_join -= 1
        fence(old, now_ms)
        member = self.members[new_id] = old.replaced_by(new_id)
        if self.leader_id == old_id:
            self.leader_id = new_id
        self.static_members.replace(instance_id, new_id)
        return member

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse, now_ms: int) -> bool:
        """Answer the JoinGroup that the member waits in. Return False if there is none."""
        if member.awaiting_join is None:
            return False
        self.waiting_to_join -= 1
        return member.answer_join(response, now_ms)

    def elect_joined_leader(self) -> bool:
        """Elect a leader among the members that have joined. Return False if no member has joined."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is None:
            joined = (one.member_id for one in self.members.values() if one.awaiting_join is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader_id = elected
        return True

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise UNKNOWN_MEMBER_ID for an unknown member, FENCED_INSTANCE_ID for a static member that was replaced."""
        if instance_id is not None:
            self.static_members.check(instance_id, member_id)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return True if a member with these protocols can join the group."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        if self.protocol_type != protocol_type:
            return False
        return any(self._supported[name] == len(self.members) for name, _ in protocols)

    def chosen_protocol(self) -> str:
        """Return the protocol with the most votes, of those that all support. The order of a Java map breaks ties."""
        member_count = len(self.members)
        candidates = frozenset(name for name, count in self._supported.items() if count == member_count)
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(hash_map_order(votes), key=votes.__getitem__)

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that the members subscribe to, or None if their metadata cannot be decoded."""
        if not self.is_of_consumers:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                # Every version begins with the fields of version 0.
                opened, _ = ConsumerProtocolSubscription.read(member.metadata(self.protocol), 0, _VERSION_SIZE)
            except ProtocolError:
                return None
            topics.update(opened.topics)
        return frozenset(topics)

    # Methods of every kind of group (`group.py`)

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if committer.generation < 0 and self.state is EMPTY:
            return  # a consumer without group membership, or an administrator
        if committer.generation >= 0 or committer.member_id or committer.instance_id is not None:
            self.check_member(committer.member_id, committer.instance_id)
            if committer.generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not committer.is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.is_transactional and self.state is COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")

    def check_offset_delete(self) -> None:
        if self.state is not EMPTY and not self.is_of_consumers:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def offsets_idle_since(self) -> IdleSince | None:
        if self.protocol_type is None:
            return lambda committed: committed.commit_timestamp_ms
        if self.state is EMPTY:
            return lambda committed: committed.commit_timestamp_ms if self.state_since_ms < 0 else self.state_since_ms
        if self.state is STABLE and self.is_of_consumers and self.subscribed_topics is not None:
            return lambda committed: committed.commit_timestamp_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    # Responses

    def listed(self) -> ListGroupsResponse.ListedGroup:
        return ListGroupsResponse.ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state_name,
            group_type=self.type,
        )

    def described(self) -> DescribeGroupsResponse.DescribedGroup:
        protocol = self.protocol if self.state is STABLE else None
        return DescribeGroupsResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.described(protocol) for member in self.members.values()],
        )

    def join_response(self, member_id: str) -> JoinGroupResponse:
        """Return the response for a member of this generation. Only the leader's lists the members."""
        members = (
            []
            if member_id != self.leader_id
            else [
                JoinGroupResponse.JoinGroupResponseMember(
                    member_id=one.member_id, group_instance_id=one.instance_id, metadata=one.metadata(self.protocol)
                )
                for one in self.members.values()
            ]
        )
        return JoinGroupResponse(
            members=members,
            member_id=member_id,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader_id or "",
        )
