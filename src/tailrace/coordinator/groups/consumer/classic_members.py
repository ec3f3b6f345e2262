"""ClassicMembers: members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, Leave.

To such a member the coordinator is the leader: JoinGroup takes what it subscribes to and owns, SyncGroup tells it its
share. A heartbeat that finds another step to take is answered with REBALANCE_IN_PROGRESS, so that it joins again.

Timers, by name: ("session", group, member) as for any member, ("rejoin", …) until it has joined again, ("sync", …)
until it has asked for its share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tailrace.coordinator.groups.classic.joining import MEMBER_ID_REQUIRED_FROM, JoinRequest
from tailrace.coordinator.groups.classic.member import JoinAnswer, SyncAnswer
from tailrace.coordinator.groups.classic.membership import LeavingMember, SyncRequest
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_groups import ConsumerGroups
from tailrace.coordinator.groups.consumer.consumer_member import ClassicMetadata, ConsumerMember, MemberState
from tailrace.coordinator.groups.consumer.consumer_protocol import read_subscription, write_assignment
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.consumer.group_conversion import CONSUMER_PROTOCOL, can_downgrade
from tailrace.coordinator.groups.consumer.heartbeat import check_instance
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import JoinGroupResponse, LeaveGroupResponse, SyncGroupResponse


class ClassicMembers:
    def __init__(
        self,
        consumers: ConsumerGroups,
        timers: Timers,
        settings: Callable[[str], ConsumerSettings],
        image: Callable[[], MetadataImage],
        new_member_id: Callable[[], str],
    ) -> None:
        self._consumers = consumers
        self._timers = timers
        self._settings = settings
        self._image = image
        self._new_member_id = new_member_id

    # JoinGroup

    def join(self, group: ConsumerGroup, request: JoinRequest, answer: JoinAnswer, now_ms: int) -> StateChange[None]:
        settings = self._settings(group.group_id)
        if settings.migration_policy == "disabled":
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_new = not request.member_id
        member_id = request.member_id or self._new_member_id()
        if len(group.members) >= settings.size_max and member_id not in group.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not _supports(group, request):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if is_new and request.instance_id is None and request.version >= MEMBER_ID_REQUIRED_FROM:
            answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id), now_ms)
            return StateChange((), None)
        records: list[CoordinatorRecord] = []
        before = self._joining(group, request, member_id, is_new, records)
        member, owned = self._told_of(before, request)
        moved = self._consumers.advance(group, before, member, owned, records, now_ms, request.sees)
        response = JoinGroupResponse(
            member_id=member_id,
            generation_id=moved.member_epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=request.protocols[0][0],
        )

        def done(error: ErrorCode, now_ms: int) -> None:
            if error is not ErrorCode.NONE:
                return
            self._timers.cancel(("rejoin", group.group_id, member_id))
            self._consumers.watch_session(group.group_id, moved, now_ms)
            self._fence_after(
                "sync", group.group_id, member_id, request.rebalance_timeout_ms, "it did not sync in time", now_ms
            )
            answer(response, now_ms)

        stay = list(group.members_with(moved).values())
        if self._replaces_last(group, request) and can_downgrade(group, stay, settings):
            change = self._consumers.downgrade(group, stay, None)
            told = change.on_done

            def downgraded(error: ErrorCode, now_ms: int) -> None:
                assert told is not None
                told(error, now_ms)
                if error is ErrorCode.NONE:
                    answer(response, now_ms)

            return replace(change, on_done=downgraded)
        return StateChange(records, None, on_done=done)

    def _replaces_last(self, group: ConsumerGroup, request: JoinRequest) -> bool:
        """A static member that spoke the new protocol is back with the old one, and it was the last to speak it."""
        found = None if request.instance_id is None else group.static_member(request.instance_id)
        return found is not None and found.classic is None

    def _joining(
        self,
        group: ConsumerGroup,
        request: JoinRequest,
        member_id: str,
        is_new: bool,
        records: list[CoordinatorRecord],
    ) -> ConsumerMember:
        if request.instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        found = group.static_member(request.instance_id)
        if not is_new:
            return check_instance(found, request.instance_id, member_id)
        return self._consumers.static_newcomer(
            group, found, request.instance_id, member_id, records, may_take_over=True
        )

    def _told_of(
        self, member: ConsumerMember, request: JoinRequest
    ) -> tuple[ConsumerMember, dict[bytes, tuple[int, ...]]]:
        """The member with what its JoinGroup says, and what it says that it owns."""
        try:
            subscription = read_subscription(request.protocols[0][1])
        except ProtocolError as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"its subscription cannot be read: {error}") from error
        topics = self._image().topics
        owned = {
            topics[topic.topic].id: tuple(topic.partitions)
            for topic in subscription.owned_partitions
            if topic.topic in topics
        }
        told = replace(
            member,
            instance_id=member.instance_id if request.instance_id is None else request.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            topic_names=frozenset(subscription.topics),
            topic_pattern="",
            client_id=request.client_id,
            client_host=request.client_host,
            classic=ClassicMetadata(request.session_timeout_ms, tuple(request.protocols)),
        )
        return told, owned

    # SyncGroup and Heartbeat

    def sync(self, group: ConsumerGroup, request: SyncRequest, answer: SyncAnswer, now_ms: int) -> StateChange[None]:
        member = self._classic_member(group, request.member_id, request.instance_id, request.generation)
        assert member.classic is not None
        protocol, subscription = member.classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol not in (None, protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.target_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_rejoin(group.group_id, member, now_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.cancel(("sync", group.group_id, member.member_id))
        self._consumers.watch_session(group.group_id, member, now_ms)
        answer(
            SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol,
                assignment=write_assignment(member.assigned, self._image(), subscription),
            ),
            now_ms,
        )
        return StateChange((), None)

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> ErrorCode:
        member = self._classic_member(group, member_id, instance_id, generation)
        self._consumers.watch_session(group.group_id, member, now_ms)
        can_take_more = member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member)
        has_to_let_go = member.state is MemberState.UNREVOKED_PARTITIONS
        if member.member_epoch < group.target_epoch or has_to_let_go or can_take_more:
            self._expect_rejoin(group.group_id, member, now_ms)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _classic_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerMember:
        member = (
            group.member(member_id)
            if instance_id is None
            else check_instance(group.static_member(instance_id), instance_id, member_id)
        )
        if member.classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        if member.member_epoch != generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _expect_rejoin(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        if ("rejoin", group_id, member.member_id) not in self._timers:
            why = "it did not join again in time"
            self._fence_after("rejoin", group_id, member.member_id, member.rebalance_timeout_ms, why, now_ms)

    def _fence_after(self, timer: str, group_id: str, member_id: str, wait_ms: int, why: str, now_ms: int) -> None:
        self._timers.schedule(
            (timer, group_id, member_id),
            now_ms + wait_ms,
            lambda _: self._consumers.fence_silent(group_id, member_id, why),
        )

    # LeaveGroup

    def leave(self, group: ConsumerGroup, leaving: Sequence[LeavingMember]) -> StateChange[LeaveGroupResponse]:
        response = LeaveGroupResponse(members=[])
        gone: dict[str, ConsumerMember] = {}
        for one in leaving:
            told = LeaveGroupResponse.MemberResponse(member_id=one.member_id, group_instance_id=one.instance_id)
            try:
                member = self._leaving(group, one)
                gone[member.member_id] = member
            except KafkaError as error:
                told.error_code = error.code
            response.members.append(told)
        return self._consumers.fence(group, list(gone.values()), response)

    def _leaving(self, group: ConsumerGroup, one: LeavingMember) -> ConsumerMember:
        if one.instance_id is None:
            return group.member(one.member_id)
        found = group.static_member(one.instance_id)
        # An administrator removes static members by their instance id alone.
        return check_instance(found, one.instance_id, one.member_id or (found.member_id if found else ""))


def _supports(group: ConsumerGroup, request: JoinRequest) -> bool:
    """Whether it has a protocol in common with everybody who speaks the classic one."""
    if request.protocol_type != CONSUMER_PROTOCOL or not request.protocols:
        return False
    wanted = {name for name, _ in request.protocols}
    supported = [
        {name for name, _ in member.classic.protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return any(all(name in others for others in supported) for name in wanted)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether some of what it shall have is still somebody else's."""
    return any(
        group.is_held(topic, partition)
        for topic, partitions in group.target.get(member.member_id, {}).items()
        for partition in partitions
        if partition not in member.assigned.get(topic, ())
    )
