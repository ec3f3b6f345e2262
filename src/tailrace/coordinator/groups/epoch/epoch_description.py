"""Parts of the Describe responses that consumer, share and streams groups have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tailrace.coordinator.groups.epoch.epoch_group import EpochGroup
from tailrace.coordinator.groups.epoch.epoch_member import EpochMember
from tailrace.metadata.image.image import MetadataImage


def group_fields(group: EpochGroup[Any, Any]) -> dict[str, Any]:
    return {
        "group_id": group.group_id,
        "group_state": group.state_name,
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
    }


def member_fields(member: EpochMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "member_epoch": member.member_epoch,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }


def named_partitions(
    struct: Callable[..., Any], partitions: Mapping[bytes, Iterable[int]], image: MetadataImage
) -> list[Any]:
    """Return the partitions by topic, with the names of the topics. Deleted topics are left out."""
    return [
        struct(topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(numbers))
        for topic_id, numbers in partitions.items()
        if topic_id in image.topics_by_id
    ]
