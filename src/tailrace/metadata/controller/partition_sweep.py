"""PartitionSweep: changes of leaders and ISRs that follow a change of a broker, in steps.

The fencing of a broker concerns every partition with it in the ISR. In a large cluster the change of the broker is
written first. A sweep over all partitions follows: brokers that are not active leave the ISRs, and partitions without a
usable leader get another one. Meanwhile elections and ISR proposals already respect the new state of the broker.
A controller sweeps when it starts, because its predecessor may have stopped in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Final

from tailrace.metadata.controller.control_state import ControlState
from tailrace.metadata.decisions.replicas.leadership import replace_unusable_replicas
from tailrace.protocol.message import Message

AT_ONCE: Final = 1_000  # partitions of a cluster whose changes are written together with that of a broker
EXAMINED: Final = 500  # partitions that a step examines
CHANGED: Final = 100  # partitions that a step changes


class PartitionSweep:
    def __init__(self, state: Callable[[], ControlState], commit: Callable[[list[Message], int], None]) -> None:
        self._state = state
        self._commit = commit
        self._steps: Generator[list[Message], None, None] | None = None
        self._is_outdated = False  # True if brokers have changed since the sweep began
        self._counted: tuple[object, int] = (None, 0)  # the topics and the number of their partitions

    @property
    def is_running(self) -> bool:
        return self._steps is not None

    def is_needed(self) -> bool:
        """Return True if the cluster has too many partitions to change them together with a broker."""
        topics = self._state().image.topics
        if self._counted[0] is not topics:
            self._counted = topics, sum(len(topic.partitions) for topic in topics.values())
        return self._counted[1] > AT_ONCE

    def start(self) -> None:
        """Sweep, once more if a sweep is under way."""
        if self._steps is None:
            self._steps = self._sweep()
        else:
            self._is_outdated = True

    def tick(self, now_ms: int) -> None:
        """Do a step."""
        if self._steps is None:
            return
        records = next(self._steps, None)
        if records:
            self._commit(records, now_ms)
        elif records is None:
            self._steps = None
            if self._is_outdated:
                self._is_outdated = False
                self.start()

    def _sweep(self) -> Generator[list[Message], None, None]:
        """Yield the records of each step."""
        partitions = self._partitions()
        while some := list(islice(partitions, EXAMINED)):
            for first in range(0, len(some), CHANGED):
                records, state = [], self._state()
                for name, number in some[first : first + CHANGED]:
                    records += replace_unusable_replicas(state, name, number)
                if records:
                    yield records
            yield []

    def _partitions(self) -> Iterator[tuple[str, int]]:
        """Yield the partitions of the topics that exist now."""
        for name in list(self._state().image.topics):
            topic = self._state().image.topics.get(name)
            if topic is not None:
                for number in list(topic.partitions):
                    yield name, number
