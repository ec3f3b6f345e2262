"""Elections that nobody asks for: preferred leaders, and unclean leaders where a topic allows them.

After a broker has returned, others still lead its partitions. Every leader.imbalance.check.interval.seconds the
preferred replicas that are in sync become leaders again. Partitions without a leader are checked every
unclean.leader.election.interval.ms, because unclean.leader.election.enable may have been set meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.replicas.leadership import (
    leader_and_isr_changes,
    partition_change,
    partitions_without_leader,
)
from tailrace.metadata.decisions.replicas.partition_change import Election
from tailrace.metadata.image.image import TopicImage
from tailrace.protocol.message import Message

ELECTIONS_AT_ONCE: Final = 200


def plan_balance(state: ControlState) -> Plan[bool]:
    """Elect preferred leaders that are in sync. The result is True if there are more than ELECTIONS_AT_ONCE."""
    records: list[Message] = []
    for topic, number, partition in state.image.partitions():
        if partition.leader == partition.preferred_leader:
            continue
        if len(records) >= ELECTIONS_AT_ONCE:
            return Plan(records, True)
        record = replace(partition_change(state, topic, number), election=Election.PREFERRED).build()
        if record is not None:
            records.append(record)
    return Plan(records, False)


def plan_unclean_elections(state: ControlState) -> Plan[bool]:
    """Elect leaders uncleanly where that is allowed and nobody leads. The result is as in `plan_balance`."""
    waiting = list(_without_leader_where_allowed(state))
    return Plan(leader_and_isr_changes(state, waiting[:ELECTIONS_AT_ONCE]), len(waiting) > ELECTIONS_AT_ONCE)


def _without_leader_where_allowed(state: ControlState) -> Iterator[tuple[TopicImage, int]]:
    allowed: dict[str, bool] = {}  # of each topic, looked up once
    for topic, number in partitions_without_leader(state):
        if topic.name not in allowed:
            allowed[topic.name] = state.configs.allows_unclean_election(state.image, topic.name)
        if allowed[topic.name]:
            yield topic, number
