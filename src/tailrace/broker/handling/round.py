"""Round: work that is done once for all requests of a round, when the replies are taken.

The server hands over the requests that arrive together, one after the other, and then takes their replies. Two kinds of
work wait until then: one write for several Produce requests, and one check of the operations that wait for new records
of a partition.
"""

from __future__ import annotations

from typing import Protocol

from tailrace.model.ids import TopicPartition
from tailrace.waiting.purgatory import Purgatory


class CollectedWork(Protocol):
    """Requests that are carried out together."""

    def carry_out(self) -> None:
        """Carry them out."""


class Round:
    def __init__(self, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        self._collected: CollectedWork | None = None
        self.is_collecting = False  # True while there is collected work
        self._appended: dict[TopicPartition, int] = {}  # by partition: the time of the last append

    def appended(self, key: TopicPartition, now_ms: int) -> None:
        """Note that records were appended to a partition, or that its high watermark has moved."""
        self._appended[key] = now_ms

    def collect(self, work: CollectedWork) -> None:
        """Note that there is collected work. It is carried out before any other kind of request."""
        self._collected = work
        self.is_collecting = True

    def carry_out(self) -> None:
        """Carry out the collected work."""
        collected = self._collected
        if collected is not None:
            self._collected = None
            self.is_collecting = False
            collected.carry_out()

    def end(self) -> None:
        """Carry out the collected work, and check the operations that wait for appended records."""
        if self.is_collecting:
            self.carry_out()
        while self._appended:
            appended, self._appended = self._appended, {}
            for key, now_ms in appended.items():
                self._purgatory.check(key, now_ms)
