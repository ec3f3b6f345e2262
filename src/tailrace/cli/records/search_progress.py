"""SearchProgress: reports how far a search through partitions is, as lines of JSON among the records."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Final

from tailrace.cli.output import json_line, print_lines
from tailrace.model.ids import Offset, TopicPartition

_INTERVAL_S: Final = 0.5


class SearchProgress:
    def __init__(self, starts: Mapping[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset]) -> None:
        self._starts = starts
        self._total = sum(max(ends[one] - start, 0) for one, start in starts.items())
        self._done: dict[TopicPartition, int] = {}
        self._began_s = time.monotonic()
        self._next_s = self._began_s + _INTERVAL_S

    def note(self, partition: TopicPartition, position: Offset) -> None:
        """Note the next offset to read of a partition, and report now and then."""
        self._done[partition] = position - self._starts[partition]
        if time.monotonic() >= self._next_s:
            self.report()

    def report(self) -> None:
        now_s = time.monotonic()
        self._next_s = now_s + _INTERVAL_S
        fields = {
            "read": min(sum(self._done.values()), self._total),
            "total": self._total,
            "elapsedMs": int((now_s - self._began_s) * 1_000),
        }
        print_lines(json_line({"progress": fields}))
        sys.stdout.flush()
