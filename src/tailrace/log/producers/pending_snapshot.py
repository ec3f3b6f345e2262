"""PendingSnapshot: a snapshot of many producers, encoded some at a time.

Encoding the states of 100,000 producers in one go would hold the broker's loop for 0.15 seconds. Between two pieces
producers append. The snapshot has the states as they were when it began: `keep` encodes the state of a producer that is
about to change. The order of the rows has no meaning for a reader; Kafka's own is that of a Java hash map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tailrace.log.producers.producer_snapshot import encode_row, join_rows
from tailrace.log.producers.producer_state import ProducerState
from tailrace.model.ids import Offset, ProducerId

PRODUCERS_AT_ONCE: Final = 100  # some 0.1 ms
PRODUCERS_MAX: Final = 2_000  # up to this number the states are encoded at once


class PendingSnapshot:
    def __init__(self, offset: Offset, producers: Mapping[ProducerId, ProducerState]) -> None:
        self.offset = offset
        self._left = dict(producers)
        self._rows: list[bytes] = []

    def keep(self, producer_id: ProducerId) -> None:
        """Encode the state of a producer, because it is about to change."""
        state = self._left.pop(producer_id, None)
        if state is not None:
            self._rows.append(encode_row(state.to_snapshot()))

    def encode_some(self) -> bytes | None:
        """Encode some states. Return the content of the file if they were the last ones."""
        left, rows = self._left, self._rows
        for _ in range(min(PRODUCERS_AT_ONCE, len(left))):
            rows.append(encode_row(left.popitem()[1].to_snapshot()))
        return None if left else join_rows(rows)
