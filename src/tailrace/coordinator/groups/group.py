"""Group: what the coordinator asks of a group, whichever protocol its members speak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.messages import ListGroupsResponse


class PartitionCommit(NamedTuple):
    """What a client wants to have committed for a partition."""

    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    timestamp_ms: int = -1  # only clients of version 1 say when


class TopicCommit(NamedTuple):
    name: str
    topic_id: bytes
    partitions: Sequence[PartitionCommit]


class Committer(NamedTuple):
    """Who wants to commit, as the request says, and in which version of it."""

    member_id: str
    instance_id: str | None
    generation: int  # or the member's epoch
    version: int
    is_transactional: bool = False

    @property
    def is_unnamed(self) -> bool:
        """A producer that does not say who consumes."""
        return self.is_transactional and self.generation == -1 and not self.member_id and self.instance_id is None


class CommittedOffset(NamedTuple):
    """How far a group has read a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # of commits in the oldest versions; -1 for none
    record_offset: int  # where in the log it was committed: of two commits the later one counts


IdleSince: TypeAlias = Callable[[CommittedOffset], int]  # from when on an offset's retention counts, in ms


class Group(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def type(self) -> str:
        """As clients name it: classic, consumer, share, streams."""

    @property
    def state_name(self) -> str:
        """As clients name it: Empty, Stable, …"""

    @property
    def is_empty(self) -> bool:
        """Without members, and none about to join."""

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """A KafkaError for a commit that is not a current member's, or not of what that member has."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A KafkaError for a fetch that is not a current member's."""

    def check_offset_delete(self) -> None:
        """A KafkaError if no offset may be deleted."""

    def check_delete(self) -> None:
        """A KafkaError if the group may not be deleted."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_idle_since(self) -> IdleSince | None:
        """None as long as no offset may expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Records that make the group forgotten, without its offsets."""

    def listed(self) -> ListGroupsResponse.ListedGroup: ...
