"""Group: the interface of all kinds of groups, and the values of offset commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.flat.offset_commit import PartitionCommit
from tailrace.protocol.messages import ListGroupsResponse


class TopicCommit(NamedTuple):
    """The offsets that a client commits for partitions of a topic."""

    name: str
    topic_id: bytes
    partitions: list[PartitionCommit]


class Committer(NamedTuple):
    """The sender of an offset commit, and the version of its request."""

    member_id: str
    instance_id: str | None
    generation: int  # or the member epoch
    version: int
    is_transactional: bool = False

    @property
    def is_unnamed(self) -> bool:
        """Return True for a transactional producer that sends no group metadata."""
        return self.is_transactional and self.generation == -1 and not self.member_id and self.instance_id is None


class CommittedOffset(NamedTuple):
    """The committed offset of a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # only for commits in version 1; -1: none
    record_offset: int  # position in the log: the later of two commits counts


IdleSince: TypeAlias = Callable[[CommittedOffset], int]  # the time in ms from which the retention of an offset counts


IsVisible: TypeAlias = Callable[[str], bool]  # (topic): True if the client may describe it


def all_visible(_: str) -> bool:
    return True


class Group(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def type(self) -> str:
        """The name in the protocol: classic, consumer, share, streams."""

    @property
    def state_name(self) -> str:
        """The name in the protocol: Empty, Stable, …"""

    @property
    def is_empty(self) -> bool:
        """True if the group has no members, and none is about to join."""

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """Raise a KafkaError if the commit is not from a current member, or not for its partitions."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise a KafkaError if the fetch is not from a current member."""

    def check_offset_delete(self) -> None:
        """Raise a KafkaError if no offset may be deleted."""

    def check_delete(self) -> None:
        """Raise a KafkaError if the group may not be deleted."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_idle_since(self) -> IdleSince | None:
        """Return None while no offset may expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, without its offsets."""

    def listed(self) -> ListGroupsResponse.ListedGroup: ...
