"""ClassicProtocolMembers: members of a consumer group that use the classic protocol.

They send JoinGroup, SyncGroup, Heartbeat and LeaveGroup. To them the coordinator is the leader of the group: JoinGroup
takes their subscription and the partitions that they own, SyncGroup returns their assignment. A Heartbeat gets
REBALANCE_IN_PROGRESS if the member has another step to take, so that it joins again.

Timers, by name: ("session", group, member) as for any member, ("rejoin", …) until the member has joined again,
("sync", …) until it has sent SyncGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tailrace.coordinator.groups.classic.classic_join import MEMBER_ID_REQUIRED_FROM
from tailrace.coordinator.groups.classic.classic_member import JoinAnswer, SyncAnswer
from tailrace.coordinator.groups.classic.classic_membership import LeavingMember, SyncRequest
from tailrace.coordinator.groups.classic.join_request import JoinRequest
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_groups import ConsumerGroups
from tailrace.coordinator.groups.consumer.consumer_heartbeat import check_instance
from tailrace.coordinator.groups.consumer.consumer_member import ClassicMetadata, ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_protocol import read_subscription, write_assignment
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.consumer.group_conversion import CONSUMER_PROTOCOL, can_downgrade
from tailrace.coordinator.groups.epoch.epoch_member import MemberState
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import JoinGroupResponse, LeaveGroupResponse, SyncGroupResponse


class ClassicProtocolMembers:
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
        before = self._member_before(group, request, member_id, is_new, records)
        member, owned = self._with_join(before, request)
        moved = self._consumers.advance(group, before, member, owned, settings, records, now_ms, request.is_visible)
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
            self._consumers.restart_session(group.group_id, moved, settings, now_ms)
            self._consumers.timers.fence_after(
                "sync", group.group_id, member_id, request.rebalance_timeout_ms, "it did not sync in time", now_ms
            )
            answer(response, now_ms)

        stay = list(group.members_with(moved).values()) if self._replaces_consumer(group, request) else []
        if can_downgrade(stay, settings):
            change = self._consumers.downgrade(group, stay, None)
            on_done = change.on_done

            def downgraded(error: ErrorCode, now_ms: int) -> None:
                assert on_done is not None
                on_done(error, now_ms)
                if error is ErrorCode.NONE:
                    answer(response, now_ms)

            return replace(change, on_done=downgraded)
        return StateChange(records, None, on_done=done)

    def _replaces_consumer(self, group: ConsumerGroup, request: JoinRequest) -> bool:
        """Return True if a static member with the new protocol returns with the classic one."""
        found = None if request.instance_id is None else group.static_member(request.instance_id)
        return found is not None and found.classic is None

    def _member_before(
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

    def _with_join(
        self, member: ConsumerMember, request: JoinRequest
    ) -> tuple[ConsumerMember, dict[bytes, tuple[int, ...]]]:
        """Return the member with the facts of its JoinGroup, and the partitions that it owns."""
        try:
            subscription = read_subscription(request.protocols[0][1])
        except ProtocolError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"the subscription of member {member.member_id} cannot be decoded: {error}",
            ) from error
        topics = self._image().topics
        owned = {
            topics[topic.topic].id: tuple(topic.partitions)
            for topic in subscription.owned_partitions
            if topic.topic in topics
        }
        joined = replace(
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
        return joined, owned

    # SyncGroup and Heartbeat

    def sync(self, group: ConsumerGroup, request: SyncRequest, answer: SyncAnswer, now_ms: int) -> StateChange[None]:
        member = self._classic_member(group, request.member_id, request.instance_id, request.generation)
        assert member.classic is not None
        protocol, subscription = member.classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol not in (None, protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.target_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED:
            self._expect_rejoin(group.group_id, member, now_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.cancel(("sync", group.group_id, member.member_id))
        self._consumers.restart_session(group.group_id, member, self._settings(group.group_id), now_ms)
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
        self._consumers.restart_session(group.group_id, member, self._settings(group.group_id), now_ms)
        can_take_more = member.state is MemberState.UNRELEASED and not _waits_for_others(group, member)
        must_revoke = member.state is MemberState.UNREVOKED
        if member.member_epoch < group.target_epoch or must_revoke or can_take_more:
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
            self._consumers.timers.fence_after(
                "rejoin", group_id, member.member_id, member.rebalance_timeout_ms, why, now_ms
            )

    # LeaveGroup

    def leave(self, group: ConsumerGroup, leaving: Sequence[LeavingMember]) -> StateChange[LeaveGroupResponse]:
        response = LeaveGroupResponse(members=[])
        removed: dict[str, ConsumerMember] = {}
        for one in leaving:
            result = LeaveGroupResponse.MemberResponse(member_id=one.member_id, group_instance_id=one.instance_id)
            try:
                member = self._leaving(group, one)
                removed[member.member_id] = member
            except KafkaError as error:
                result.error_code = error.code
            response.members.append(result)
        return self._consumers.fence(group, list(removed.values()), response)

    def _leaving(self, group: ConsumerGroup, one: LeavingMember) -> ConsumerMember:
        if one.instance_id is None:
            return group.member(one.member_id)
        found = group.static_member(one.instance_id)
        # An administrator removes static members by their instance id alone.
        return check_instance(found, one.instance_id, one.member_id or (found.member_id if found else ""))


def _supports(group: ConsumerGroup, request: JoinRequest) -> bool:
    """Return True if the request has a protocol that all members with the classic protocol support."""
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
    """Return True if another member has part of this member's target."""
    return any(
        group.is_held(topic, partition)
        for topic, partitions in group.target.get(member.member_id, {}).items()
        for partition in partitions
        if partition not in member.assigned.get(topic, ())
    )
