"""AppendGroup: plain batches of producers for one log, checked and placed one by one, written together.

Requests that arrive together for one partition cost one write, one look at the indexes and one move of the bounds. What
is placed has its offset, and nobody can read it before `write`. A group takes what most producers send: one sound
uncompressed batch for a topic that keeps it as it is, without a producer id or the next in its producer's sequence, for
the active segment. Anything else is refused with nothing changed, and `validate_produced` says what it is.

    place* ──► write (the log has moved, the group is empty)   or   OSError (the group is empty)

Between the first `place` and `write` nobody else may change the log.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from tailrace.log.position import LogPosition
from tailrace.log.producers.producer_state import ProducerState
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.model.topic_config import INT_MAX, LONG_MAX
from tailrace.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CODEC_POSITION,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    RecordBatch,
)
from tailrace.records.checked_records import LOOP_COST_MAX
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.kernels import place_produced

if TYPE_CHECKING:
    from tailrace.log.partition_log import PartitionLog

JOINED_BYTES_MAX: Final = 65_536  # up to here copying batches side by side is cheaper than writing each
_FACTS: Final = Struct(">iqqq").unpack_from  # last offset delta, base and largest timestamp, producer id


class AppendGroup:
    __slots__ = (
        "_batches", "_batches_max", "_epoch", "_producers", "_room", "_timestamp_max", "_views", "end_offset", "size",
    )  # fmt: skip

    def __init__(self) -> None:
        self._views: list[memoryview] = []
        self._batches: list[tuple[int, Offset, int]] = []  # size, last offset, largest timestamp
        self._producers: dict[int, tuple[ProducerState, RecordBatch]] = {}
        self.size = 0
        self.end_offset: Offset = 0  # what the next batch is given
        # What the active segment takes without being sealed.
        self._epoch: LeaderEpoch = -1
        self._batches_max = 0
        self._room = 0
        self._timestamp_max = 0

    def __len__(self) -> int:
        """How many batches are placed and not written."""
        return len(self._views)

    def place(self, log: PartitionLog, records: memoryview, epoch: LeaderEpoch, now_ms: int) -> Offset:
        """The offset that a batch is given, in place; -1 if the group cannot take it."""
        size = len(records)
        if records.readonly:
            return -1
        if not self._views:
            if not self._begin(log, epoch, now_ms):
                return -1
        elif (
            epoch != self._epoch
            or self.size + size > JOINED_BYTES_MAX
            or len(self._views) >= self._batches_max
        ):  # fmt: skip
            return -1
        config, offset = log.config, self.end_offset
        if not HEADER_SIZE <= size <= config.max_message_bytes or size > min(self._room - self.size, LOOP_COST_MAX):
            return -1
        if records[CODEC_POSITION] & CODEC_MASK:
            return -1
        delta, _, timestamp, producer_id = _FACTS(records, LAST_OFFSET_DELTA_POSITION)
        if timestamp > self._timestamp_max:
            return -1
        batch = state = None
        if producer_id >= 0:
            state = log.producers.producers.get(producer_id)
            batch = RecordBatch(records)
            if (
                state is None
                or producer_id in self._producers
                or producer_id in log.producers.verifications
                or not state.goes_on_with(batch)
            ):
                return -1
        if not place_produced(
            records,
            crc32c(records[ATTRIBUTES_POSITION:]),
            offset,
            epoch,
            now_ms,
            config.message_timestamp_before_max_ms,
            config.message_timestamp_after_max_ms,
            config.is_compacted,
        ):
            return -1
        if batch is not None and state is not None:
            batch.base_offset = offset
            self._producers[producer_id] = state, batch
        self._views.append(records)
        self._batches.append((size, offset + delta, timestamp))
        self.end_offset = offset + delta + 1
        self.size += size
        return offset

    def _begin(self, log: PartitionLog, epoch: LeaderEpoch, now_ms: int) -> bool:
        """Note what the log's active segment takes; False if it takes nothing."""
        config, segment, end_offset = log.config, log.segments.active, log.marks.log_end.offset
        latest = log.epochs.latest
        if (
            not config.keeps_plain_batches
            or latest is None
            or latest.epoch != epoch
            or latest.start_offset > end_offset
            or segment.has_full_index
            or end_offset - segment.base_offset > INT_MAX // 2  # with room for whatever a group may bring
        ):
            return False
        self._epoch = epoch
        self.end_offset = end_offset
        self._room = config.roll_bytes - segment.size
        self._timestamp_max = LONG_MAX
        self._batches_max = 1  # of a new segment: from the first batch its age is counted
        if segment.size:
            self._batches_max = segment.index_room
            first, age_max = segment.first_batch_timestamp(), config.roll_ms - segment.jitter_ms
            if first >= 0:
                self._timestamp_max = min(first + age_max, LONG_MAX)
            elif now_ms - segment.created_ms > age_max:
                return False
        return True

    def write(self, log: PartitionLog, now_ms: int) -> None:
        """Append what was placed. If that fails nothing of it is in the log, or all of it and its flush has failed."""
        views, batches, producers = self._views, self._batches, self._producers
        self._views, self._batches, self.size = [], [], 0
        if producers:
            self._producers = {}
        segment, end = log.segments.active, self.end_offset
        segment.append_joined(views[0] if len(views) == 1 else b"".join(views), batches)
        log.marks.log_end = LogPosition(end, segment.base_offset, segment.size)
        log.producers.end_offset = end
        for state, batch in producers.values():
            state.go_on_with(batch)
        if end - log.recovery_point >= log.config.flush_messages:
            log.flush(now_ms)
