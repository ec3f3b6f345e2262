"""StreamsMember: a thread of a Kafka Streams application as its group sees it: it joins, sends heartbeats,
owns tasks.
"""

from __future__ import annotations

import time
from typing import Any

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import FindCoordinatorRequest, StreamsGroupHeartbeatRequest
from tests.support.raw_client import RawClient

PATIENCE_S = 60.0

_Beat = StreamsGroupHeartbeatRequest
_NOT_YET = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def word_count(group: str, source: str) -> list[_Beat.Subtopology]:
    """Return the topology of an application that counts words."""
    compacted = [_Beat.KeyValue(key="cleanup.policy", value="compact")]
    return [
        _Beat.Subtopology(
            subtopology_id="0", source_topics=[source], repartition_sink_topics=[f"{group}-words-repartition"]
        ),
        _Beat.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[_Beat.TopicInfo(name=f"{group}-words-repartition")],
            state_changelog_topics=[_Beat.TopicInfo(name=f"{group}-counts-changelog", topic_configs=compacted)],
        ),
    ]


class StreamsMember:
    def __init__(self, group: str, member_id: str, subtopologies: list[_Beat.Subtopology]) -> None:
        self.group, self.member_id = group, member_id
        self.subtopologies = subtopologies
        self.epoch = 0
        self.tasks: dict[str, list[int]] = {}

    def beat(self, client: RawClient) -> Any:
        """Send a heartbeat with the owned tasks, take the assigned tasks, and return the response."""
        request = _Beat(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            process_id=f"process of {self.member_id}",
            active_tasks=[_Beat.TaskIds(subtopology_id=name, partitions=of) for name, of in self.tasks.items()],
            standby_tasks=[],
            warmup_tasks=[],
            topology=_Beat.Topology(epoch=0, subtopologies=self.subtopologies) if self.epoch == 0 else None,
        )
        answer = client.ask(request, 0)
        if answer.error_code in _NOT_YET:
            client.ask(FindCoordinatorRequest(key=self.group), 1)  # creates the coordinator's topic
        else:
            assert answer.error_code == 0, answer
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.tasks = {one.subtopology_id: list(one.partitions) for one in answer.active_tasks}
        return answer

    def leave(self, client: RawClient) -> None:
        assert client.ask(_Beat(group_id=self.group, member_id=self.member_id, member_epoch=-1), 0).error_code == 0
        self.epoch, self.tasks = 0, {}


def reconcile(client: RawClient, members: list[StreamsMember], tasks: int) -> None:
    """Send heartbeats until the members own this number of tasks together, all in the same epoch."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answers = [member.beat(client) for member in members]
        has = sum(len(partitions) for member in members for partitions in member.tasks.values())
        if has == tasks and len({member.epoch for member in members}) == 1 and not any(one.status for one in answers):
            return
        assert time.monotonic() < deadline, answers
        time.sleep(0.05)
