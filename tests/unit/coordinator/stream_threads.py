"""Streams groups without a broker: the shard with a log in memory, and threads of an application that behave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.coordinator.groups.group_coordinator import GroupCoordinator, GroupTypeSettings
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_heartbeat import StreamsHeartbeat, StreamsHeartbeatResult
from tailrace.coordinator.groups.streams.streams_member import Tasks
from tailrace.coordinator.groups.streams.streams_settings import StreamsSettings
from tailrace.coordinator.groups.streams.streams_topology import stored_topology
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.model.errors import KafkaError
from tailrace.protocol.internal_records.coordinator_records import encode_key
from tailrace.protocol.messages import StreamsGroupHeartbeatRequest
from tests.unit.coordinator.consumers import image_of

GROUP = "application"
SOON = StreamsSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)
LINES, REPARTITION, CHANGELOG = "lines", "repartition", "changelog"
ALL = {LINES: 2, REPARTITION: 2, CHANGELOG: 2}

_Beat = StreamsGroupHeartbeatRequest
COUNTING = stored_topology(
    _Beat.Topology(
        epoch=0,
        subtopologies=[
            _Beat.Subtopology(subtopology_id="0", source_topics=[LINES], repartition_sink_topics=[REPARTITION]),
            _Beat.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[_Beat.TopicInfo(name=REPARTITION)],
                state_changelog_topics=[_Beat.TopicInfo(name=CHANGELOG)],
            ),
        ],
    )
)


class Coordinator:
    """A shard of groups whose log is a list."""

    def __init__(self, topics: Mapping[str, int], settings: StreamsSettings = SOON) -> None:
        self.image = image_of(topics)
        self.settings = settings
        self.log: list[CoordinatorRecord] = []
        self.now_ms = 1_000
        self._open()

    def _open(self) -> None:
        self.timers = Timers()
        self.shard = GroupCoordinator(
            self.timers,
            GroupSettings(),
            lambda: "unused",
            lambda: self.image,
            GroupTypeSettings(streams=lambda _: self.settings),
        )

    def set_topics(self, topics: Mapping[str, int]) -> None:
        self.image = image_of(topics, self.image.offset + 1)

    def heartbeat(self, beat: StreamsHeartbeat) -> StreamsHeartbeatResult:
        change = self.shard.streams.heartbeat(beat, self.now_ms)
        self.append(change)
        return change.response

    def append(self, change: StateChange[StreamsHeartbeatResult] | StateChange[None]) -> None:
        for record in change.records:
            assert isinstance(record, CoordinatorRecord)
            self.log.append(record)
            self.shard.replay(record, -1, -1)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        while (due := self.timers.take_due(self.now_ms)) is not None:
            change = due.operation(self.now_ms)
            if change is not None:
                self.append(change)

    def reload(self, *, compact: bool = False) -> None:
        """Load the log as another broker would."""
        if compact:
            latest = {encode_key(record.key): index for index, record in enumerate(self.log)}
            self.log = [self.log[index] for index in sorted(latest.values()) if self.log[index].value is not None]
        self._open()
        for record in self.log:
            self.shard.replay(record, -1, -1)
        for part in self.shard.loaded(self.now_ms):
            part(self.now_ms)

    @property
    def group(self) -> StreamsGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, StreamsGroup)
        return group


@dataclass
class Thread:
    """A thread of an application: it revokes tasks before it confirms that, and takes the assigned ones."""

    name: str
    process: str = ""
    epoch: int = 0
    tasks: Tasks = field(default_factory=Tasks)
    reports_all: bool = True
    statuses: tuple[int, ...] = ()

    def beat(self) -> StreamsHeartbeat:
        joins = self.epoch == 0
        reports_all = joins or self.reports_all
        return StreamsHeartbeat(
            group_id=GROUP,
            member_id=self.name,
            member_epoch=self.epoch,
            client_id=self.name,
            client_host="/127.0.0.1",
            rebalance_timeout_ms=60_000 if reports_all else -1,
            topology=COUNTING if joins else None,
            owned=self.tasks if reports_all else None,
            process_id=self.process or self.name if reports_all else None,
        )

    def heartbeat(self, coordinator: Coordinator, *, is_answer_lost: bool = False) -> None:
        try:
            response = coordinator.heartbeat(self.beat()).response
        except KafkaError:
            self.fenced()
            return
        if is_answer_lost:
            return
        self.epoch = response.member_epoch
        self.statuses = tuple(status.status_code for status in response.status or ())
        if response.active_tasks is not None:
            self.tasks = Tasks(
                *(
                    {one.subtopology_id: frozenset(one.partitions) for one in tasks or ()}
                    for tasks in (response.active_tasks, response.standby_tasks, response.warmup_tasks)
                )
            )

    @property
    def active(self) -> set[tuple[str, int]]:
        return {(name, number) for name, numbers in self.tasks.active.items() for number in numbers}

    @property
    def standby(self) -> set[tuple[str, int]]:
        return {(name, number) for name, numbers in self.tasks.standby.items() for number in numbers}

    def fenced(self) -> None:
        self.tasks = Tasks()
        self.epoch = 0

    def leave(self, coordinator: Coordinator) -> None:
        coordinator.heartbeat(self.beat()._replace(member_epoch=-1))
        self.fenced()
