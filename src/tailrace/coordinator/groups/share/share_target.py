"""The target assignment of a share group: the partitions of all members for one epoch."""

from __future__ import annotations

from tailrace.coordinator.groups.epoch.epoch_group import Assignment
from tailrace.coordinator.groups.epoch.target_computations import Target
from tailrace.coordinator.groups.share.share_assignor import NAME, ShareSpec, assign_simple
from tailrace.coordinator.groups.share.share_group import ShareGroup
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.metadata.image.image import MetadataImage


def share_target(group: ShareGroup, epoch: int, member: ShareMember, image: MetadataImage) -> Target[Assignment]:
    """Return the target of a group. `member` is a new or changed member, which the group does not have yet."""
    topics = image.topics
    before = group.target.copy()
    specs = {name: ShareSpec(one.topic_names, before.get(name, {})) for name, one in group.members_with(member).items()}
    ids = {name: topics[name].id for name in group.topics_with(member, topics)}
    assignable = {} if group.topics is None else group.topics.assignable
    cost = sum(len(one.topic_names) for one in specs.values()) + sum(map(len, assignable.values()))
    return Target(epoch, NAME, before, cost, lambda: assign_simple(specs, ids, assignable))
