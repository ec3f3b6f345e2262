"""EpochGroup: the state that consumer, share and streams groups have in common, as the log describes it.

Three epochs show how far a change has come. The group epoch is bumped when members, subscriptions or topics change. The
target epoch follows when the target assignment has been computed for it. A member's epoch follows when that member has
reached its target.

    Empty ──join──► Assigning (group epoch > target epoch) ──► Reconciling (members below the target epoch) ──► Stable
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from tailrace.coordinator.groups.epoch.epoch_member import EpochMember
from tailrace.coordinator.groups.group import Committer, IdleSince, TopicCommit
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ListGroupsResponse

M = TypeVar("M", bound=EpochMember)
A = TypeVar("A")  # the assignment of one member: partitions, or tasks

Assignment: TypeAlias = dict[bytes, frozenset[int]]  # partitions by topic id; no topic without partitions

NO_TARGET_EPOCH: Final = -1
COMMIT_VERSION_MIN: Final = 9  # the first version of OffsetCommit that has member epochs


class EpochGroup(Generic[M, A]):
    type: ClassVar[str]  # and the protocol type: consumer, share, streams

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.members: dict[str, M] = {}
        self.target_epoch = 1
        self.target_timestamp_ms = 0
        self.target: dict[str, A] = {}
        self.hashed_topics: Any = None  # `topics` of the image in which `metadata_hash` was last found to be current

    def note_hashed(self, topics: Any) -> None:
        """Note that `metadata_hash` is current in an image with these `topics`."""
        self.hashed_topics = topics

    # Replay

    def put_epoch(self, value: Any) -> None:
        """Store the value of a group metadata record."""
        self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self.target_epoch, self.target_timestamp_ms = epoch, timestamp_ms

    def put_member(self, member: M) -> None:
        self.members[member.member_id] = member

    def remove_member(self, member_id: str) -> None:
        self.members.pop(member_id, None)

    def take_back_assignment(self, member_id: str) -> None:
        """Replay the tombstone of a current assignment, which comes before that of the member."""
        member = self.members.get(member_id)
        if member is not None:
            self.put_member(member.without_assignment())

    # Members

    def member(self, member_id: str) -> M:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    # Committed offsets

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """Raise a KafkaError if the commit is not allowed."""
        raise NotImplementedError

    def stale_committer(self, committer: Committer) -> M | None:
        """Return the member if it commits in an earlier epoch, so that each partition has to be checked.

        Return None if the commit is allowed as it is. Raise a KafkaError if it is refused as a whole.
        """
        generation = committer.generation
        is_administrator = generation < 0 and not self.members
        if is_administrator or committer.is_unnamed:
            return None
        member = self.member(committer.member_id)
        if not committer.is_transactional and committer.version < COMMIT_VERSION_MIN and self.needs_epochs(member):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version 9 or above must be used by members using the {self.type} group protocol",
            )
        if generation == member.member_epoch:
            return None
        if generation > member.member_epoch:
            word = self.epoch_name(member)
            raise self.stale(
                member, f"Received {word} {generation} is newer than current member epoch {member.member_epoch}."
            )
        return member

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise self.stale(
                member,
                f"The received {self.epoch_name(member)} {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}.",
            )

    def needs_epochs(self, member: M) -> bool:
        """Return True if the member must commit with a version that has member epochs."""
        return True

    def epoch_name(self, member: M) -> str:
        """Return the name of a member epoch in the member's protocol."""
        return "member epoch"

    def stale(self, member: M, message: str) -> KafkaError:
        """Return the error for a request in an epoch that is not current."""
        return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)

    def check_offset_delete(self) -> None:
        """Allow it: `is_subscribed_to` protects the topics in use."""

    def offsets_idle_since(self) -> IdleSince | None:
        return lambda committed: committed.commit_timestamp_ms

    # All groups

    def is_subscribed_to(self, topic: str) -> bool:
        raise NotImplementedError

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, without its offsets."""
        raise NotImplementedError

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def listed(self) -> ListGroupsResponse.ListedGroup:
        return ListGroupsResponse.ListedGroup(
            group_id=self.group_id, protocol_type=self.type, group_state=self.state_name, group_type=self.type
        )
