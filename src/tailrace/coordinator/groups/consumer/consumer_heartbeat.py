"""ConsumerHeartbeat: a ConsumerGroupHeartbeat request, and the checks of the member that it comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_reconciliation import Owned
from tailrace.coordinator.groups.group import IsVisible, all_visible
from tailrace.model.errors import ErrorCode, KafkaError


class ConsumerHeartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat request, decoded. None means that a field has not changed."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] | None = None
    topic_pattern: str | None = None
    server_assignor: str | None = None
    owned: Owned | None = None
    is_visible: IsVisible = all_visible

    @property
    def is_full(self) -> bool:
        """Return True if the request reports every field, as after a lost response. The response is then full, too."""
        subscribes = self.topic_names is not None or self.topic_pattern is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None


def with_heartbeat(member: ConsumerMember, beat: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with the fields that its heartbeat reports. It uses the new protocol from now on."""
    reported = member.with_reported(
        instance_id=beat.instance_id,
        rack_id=beat.rack_id,
        rebalance_timeout_ms=None if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms,
        server_assignor=beat.server_assignor,
        topic_names=beat.topic_names,
        topic_pattern=beat.topic_pattern,
        client_id=beat.client_id,
        client_host=beat.client_host,
    )
    return reported if reported.classic is None else replace(reported, classic=None)


def check_instance(member: ConsumerMember | None, instance_id: str, member_id: str) -> ConsumerMember:
    """Return the static member. Raise a KafkaError if there is none or if it has another member id."""
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member
