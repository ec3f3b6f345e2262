"""StreamsGroup: a Kafka Streams application whose tasks are assigned by the coordinator (KIP-1071), as the log has it.

    Empty ──join──► NotReady (topics are missing) ──► Assigning (group epoch > target epoch) ──► Reconciling ──► Stable

Epochs are those of a consumer group (`consumer_group.py`). What is not in the log is worked out again by whoever
coordinates the group next: the configured topology, the epoch of the endpoints, a shutdown that was asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tailrace.coordinator.groups.group import Committer, IdleSince, TopicCommit
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology
from tailrace.coordinator.groups.streams.java_collections import (
    TIMELINE_CAPACITY_MIN,
    grown_timeline_capacity,
    timeline_order,
)
from tailrace.coordinator.groups.streams.streams_member import NO_TASKS, HeldTasks, StreamsMember, Tasks
from tailrace.coordinator.groups.streams.streams_records import group_tombstones
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ListGroupsResponse

NO_TARGET_EPOCH = -1
LEAVE_EPOCH = -1
COMMIT_VERSION_MIN = 9  # of OffsetCommit: the first that knows member epochs


class TaskHolders:
    """Which processes have a task now, or have not let go of it."""

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._copies: dict[tuple[str, int, bool], set[str]] = defaultdict(set)  # the flag says: a warmup

    def active(self, subtopology: str, partition: int) -> str | None:
        return self._active.get((subtopology, partition))

    def is_copied_by(self, process_id: str, subtopology: str, partition: int) -> bool:
        return any(process_id in self._copies.get((subtopology, partition, kind), ()) for kind in (False, True))

    def put(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.to_revoke):
            for task in _each(tasks.active):
                self._active[task] = member.process_id
            for key in _copies(tasks):
                self._copies[key].add(member.process_id)

    def remove(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.to_revoke):
            for task in _each(tasks.active):
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            for key in _copies(tasks):
                self._copies[key].discard(member.process_id)
                if not self._copies[key]:
                    del self._copies[key]


def _each(tasks: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    return ((name, partition) for name, partitions in tasks.items() for partition in partitions)


def _copies(tasks: HeldTasks) -> Iterator[tuple[str, int, bool]]:
    for kind, sets in ((False, tasks.standby), (True, tasks.warmup)):
        for name, partition in _each(sets):
            yield name, partition, kind


class StreamsGroup:
    type = "streams"
    protocol_type = "streams"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: dict[str, str] = {}
        self.members: dict[str, StreamsMember] = {}
        self.target_epoch = 1
        self.target_timestamp_ms = 0
        self.target: dict[str, Tasks] = {}
        self.topology: StreamsTopology | None = None
        self.holders = TaskHolders()
        self.configured: ConfiguredTopology | None = None
        self.looked_at_topics: Any = None  # the topics of the image that the hash was last computed of
        self.endpoint_epoch = 0
        self.shutdown_asked_by: str | None = None
        self._member_slots = TIMELINE_CAPACITY_MIN

    # As the log says

    def put_member(self, member: StreamsMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self.holders.remove(before)
        self.members[member.member_id] = member
        self._member_slots = grown_timeline_capacity(self._member_slots, len(self.members))
        self.holders.put(member)

    def take_back_assignment(self, member_id: str) -> None:
        """The member is about to leave."""
        member = self.members.get(member_id)
        if member is not None:
            self.put_member(
                replace(
                    member, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_TASKS, to_revoke=NO_TASKS
                )
            )

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.holders.remove(member)
            self._look_at_state()

    def put_epoch(self, epoch: int, metadata_hash: int, validated_topology_epoch: int) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self._look_at_state()

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self.target_epoch, self.target_timestamp_ms = epoch, timestamp_ms
        self._look_at_state()

    def put_topology(self, topology: StreamsTopology | None) -> None:
        self.topology = topology
        self._look_at_state()

    def _look_at_state(self) -> None:
        if not self.members:
            self.shutdown_asked_by = None  # whoever was to shut down has

    # Members

    def member(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def member_ids_in_order(self) -> list[str]:
        """As Kafka's own map lists them."""
        return timeline_order(self.members, self._member_slots)

    # As a group

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """Commits of an epoch before are welcome, of the input of tasks that the member has had since then."""
        generation = committer.generation
        if (generation < 0 and not self.members) or committer.is_unnamed:  # the first is an administrator
            return
        member = self.member(committer.member_id)
        if not committer.is_transactional and committer.version < COMMIT_VERSION_MIN:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group protocol",
            )
        if generation == member.member_epoch:
            return
        if generation > member.member_epoch:
            raise _stale(
                f"Received member epoch {generation} is newer than current member epoch {member.member_epoch}."
            )
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        for topic in topics:
            for commit in topic.partitions:
                self._check_task(member, generation, topic.name, commit.partition)

    def _check_task(self, member: StreamsMember, generation: int, topic: str, partition: int) -> None:
        assert self.topology is not None
        subtopology = self.topology.subtopology_of_source.get(topic)
        if subtopology is None:
            raise _stale(f"Topic {topic} is not in the topology.")
        since = member.assigned_since(subtopology, partition)
        if since is None:
            raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
        if generation < since:
            raise _stale(
                f"Received member epoch {generation} is older than assignment epoch {since} for task "
                f"{subtopology}-{partition}."
            )

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(
                f"The received member epoch {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}."
            )

    def check_offset_delete(self) -> None:
        """Offsets may go of topics that nobody reads."""

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of_source

    def offsets_idle_since(self) -> IdleSince | None:
        return lambda committed: committed.commit_timestamp_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def listed(self) -> ListGroupsResponse.ListedGroup:
        return ListGroupsResponse.ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            group_state=self.state_name,
            group_type=self.type,
        )


def _stale(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)
