"""StreamsGroup: a Kafka Streams application whose tasks are assigned by the coordinator (KIP-1071).

    Empty ──join──► NotReady (topics are missing) ──► Assigning (group epoch > target epoch) ──► Reconciling ──► Stable

The epochs are those of any epoch group. Three facts are not in the log, so the next coordinator of the group starts
without them: the configured topology, the epoch of the endpoints, and the request to shut down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tailrace.coordinator.groups.epoch.epoch_group import EpochGroup
from tailrace.coordinator.groups.epoch.epoch_replay import EpochReplay
from tailrace.coordinator.groups.group import Committer, TopicCommit
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology
from tailrace.coordinator.groups.streams.streams_member import StreamsMember, Tasks
from tailrace.coordinator.groups.streams.streams_records import STREAMS_RECORDS, group_tombstones
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology
from tailrace.coordinator.groups.streams.task_holders import TaskHolders
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.java.java_order import (
    TIMELINE_CAPACITY_MIN,
    grown_timeline_capacity,
    timeline_order,
)
from tailrace.protocol.messages import StreamsGroupTopologyKey


class StreamsGroup(EpochGroup[StreamsMember, Tasks]):
    type = "streams"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.assignment_configs: dict[str, str] = {}
        self.topology: StreamsTopology | None = None
        self.holders = TaskHolders()
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        self.shutdown_asked_by: str | None = None
        self._member_slots = TIMELINE_CAPACITY_MIN  # of the map in which Kafka has the members

    # Replay

    def put_member(self, member: StreamsMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self.holders.remove(before)
        super().put_member(member)
        self._member_slots = grown_timeline_capacity(self._member_slots, len(self.members))
        self.holders.put(member)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.holders.remove(member)
            self._end_shutdown()

    def put_epoch(self, value: Any) -> None:
        super().put_epoch(value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {config.key: config.value for config in value.last_assignment_configs or ()}
        self._end_shutdown()

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        super().put_target_epoch(epoch, timestamp_ms)
        self._end_shutdown()

    def put_topology(self, topology: StreamsTopology | None) -> None:
        self.topology = topology
        self._end_shutdown()

    def _end_shutdown(self) -> None:
        """Forget the request to shut down once all members have left."""
        if not self.members:
            self.shutdown_asked_by = None

    def request_shutdown(self, member_id: str) -> None:
        """Ask all members to shut down, unless a member has asked for that before."""
        if self.shutdown_asked_by is None:
            self.shutdown_asked_by = member_id

    def put_configured(self, configured: ConfiguredTopology) -> ConfiguredTopology:
        self.configured = configured
        return configured

    def bump_endpoint_epoch(self) -> None:
        self.endpoint_epoch += 1

    # Members

    def member_ids_in_order(self) -> list[str]:
        """Return the members in the order of Kafka's map."""
        return timeline_order(self.members, self._member_slots)

    # All groups

    @property
    def state_name(self) -> str:
        is_validated = self.topology is not None and self.topology.epoch == self.validated_topology_epoch
        return "NotReady" if self.members and not is_validated else super().state_name

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """Allow a commit in an earlier epoch for the input of tasks that the member has had since then."""
        member = self.stale_committer(committer)
        if member is None:
            return
        if self.topology is None:
            raise self.stale(member, "Topology is not available for offset commit validation.")
        for topic in topics:
            for partition, *_ in topic.partitions:
                self._check_task(member, committer.generation, topic.name, partition)

    def _check_task(self, member: StreamsMember, generation: int, topic: str, partition: int) -> None:
        assert self.topology is not None
        subtopology = self.topology.subtopology_of_source.get(topic)
        if subtopology is None:
            raise self.stale(member, f"Topic {topic} is not in the topology.")
        since = member.assigned_since(subtopology, partition)
        if since is None:
            raise self.stale(
                member, f"Task {subtopology}-{partition} is not assigned or pending revocation for member."
            )
        if generation < since:
            raise self.stale(
                member,
                f"Received member epoch {generation} is older than assignment epoch {since} for task "
                f"{subtopology}-{partition}.",
            )

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of_source

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)


def _replay_topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.put_topology(None if value is None else StreamsTopology(value))


STREAMS_REPLAY: Final = EpochReplay(StreamsGroup, STREAMS_RECORDS, (StreamsGroupTopologyKey,), _replay_topology)
