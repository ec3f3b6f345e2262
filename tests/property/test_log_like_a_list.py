"""A log is a list of batches: whatever is done to both, they stay the same, also over clean stops and power cuts."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tailrace.log.compaction.cleaner import CleanerSettings, clean_log
from tailrace.log.compaction.cleaner_kernels import SLOT_SIZE
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import OffsetOutOfRange, PartitionLog
from tailrace.log.reading.timestamp_lookup import MAX_TIMESTAMP, find_offset
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec
from tailrace.records.checks.validation import Origin
from tests.crash.log_checks import check_log
from tests.support.batches import batch, end_marker, stored_batches
from tests.support.crash_states import crash_points
from tests.support.log_model import ModelBatch, ModelLog, as_consumer, placed
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.recording_files import RecordingFiles

ROOT = "/data"
PARTITION = TopicPartition("t", 0)
NOW = 1_000_000

keys = st.sampled_from([b"a", b"b", b"c"])
values = st.one_of(st.none(), st.binary(max_size=30))
# Out of order and equal ones are the rule.
timestamps = st.integers(NOW - 20, NOW + 20)
records = st.lists(st.tuples(keys, values, timestamps), min_size=1, max_size=4)
codecs = st.sampled_from(list(Codec))
producer_ids = st.integers(1, 3)
portions = st.floats(0, 1)


class LogLikeAList(RuleBasedStateMachine):
    log: PartitionLog

    @initialize(
        policy=st.sampled_from(["delete", "delete", "compact"]),
        timestamp_type=st.sampled_from(["CreateTime", "CreateTime", "LogAppendTime"]),
        segment_bytes=st.sampled_from([250, 600, 100_000]),
        index_interval_bytes=st.sampled_from([0, 100, 4096]),
        preallocate=st.booleans(),
    )
    def begin(
        self, policy: str, timestamp_type: str, segment_bytes: int, index_interval_bytes: int, preallocate: bool
    ) -> None:
        self.config = TopicConfig(
            cleanup_policy=frozenset({policy}),
            message_timestamp_type=timestamp_type,
            internal_segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            preallocate=preallocate,
            retention_bytes=700,
            delete_retention_ms=5,
            file_delete_delay_ms=10,
        )
        start = MemoryFiles()
        start.make_directory(ROOT)
        self.files = RecordingFiles(start.root)
        self.now_ms = NOW
        self.epoch = 0
        self.model = ModelLog()
        self.floor = 0  # everything below is flushed
        self.durable_start = 0  # the log start offset in the checkpoint
        self.deleted_below = 0
        self.cleaned_to: int | None = None
        self._load()
        self.log = self.directory.create(PARTITION, self.config, self.now_ms)

    def _load(self) -> None:
        self.directory = LogDirectory(self.files, ROOT, new_id=lambda: "id")
        report = self.directory.load(lambda topic: self.config, self.now_ms)
        assert not report.failed
        if PARTITION in self.directory.logs:
            self.log = self.directory.logs[PARTITION]
            self.model.high_watermark = self.model.start

    # Appending

    @rule(records=records, codec=codecs)
    def append(self, records: list[tuple[bytes, bytes | None, int]], codec: Codec) -> None:
        self._append(_batch(records, codec=codec))

    @rule(records=records, codec=codecs, producer_id=producer_ids, transactional=st.booleans())
    def append_in_sequence(
        self, records: list[tuple[bytes, bytes | None, int]], codec: Codec, producer_id: int, transactional: bool
    ) -> None:
        open_now, _ = self.model.transactions()
        transactional = transactional or producer_id in open_now
        sequence = self._next_sequence(producer_id)
        data = _batch(records, codec=codec, producer_id=producer_id, sequence=sequence, transactional=transactional)
        result = self._append(data)
        again = self.log.append_as_leader(bytearray(data), leader_epoch=self.epoch, now_ms=self.now_ms)
        assert again.is_duplicate
        assert (again.first_offset, again.last_offset) == result
        if self.log.producers.producers[producer_id].last_sequence >= 0:
            gap = _batch(records, producer_id=producer_id, sequence=sequence + len(records) + 7)
            with pytest.raises(KafkaError, match="does not follow"):
                self.log.append_as_leader(gap, leader_epoch=self.epoch, now_ms=self.now_ms)

    def _next_sequence(self, producer_id: int) -> int:
        known = self.log.producers.producers.get(producer_id)
        return known.last_sequence + 1 if known else 0

    @rule(producer_id=producer_ids, commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        known = self.log.producers.producers.get(producer_id)
        if known is not None:
            marker = end_marker(producer_id, commit=commit, timestamp=self.now_ms)
            self._append(marker, origin=Origin.COORDINATOR)

    def _append(self, data: bytearray, origin: Origin = Origin.CLIENT) -> tuple[int, int]:
        expected = placed(bytes(data), self.model.end, self.epoch, self.config, self.now_ms)
        result = self.log.append_as_leader(bytearray(data), leader_epoch=self.epoch, now_ms=self.now_ms, origin=origin)
        self.model.append(expected)
        assert (result.first_offset, result.last_offset) == (expected.base_offset, expected.last_offset)
        return result.first_offset, result.last_offset

    @rule(batches=st.lists(records, min_size=1, max_size=3), gap=st.sampled_from([0, 0, 5]), codec=codecs)
    def append_as_follower(self, batches: list[list[tuple[bytes, bytes | None, int]]], gap: int, codec: Codec) -> None:
        if self.config.cleanup_policy == {"delete"}:
            gap = 0
        offset, data = self.model.end + gap, bytearray()
        for one in batches:
            data += _batch(one, codec=codec, base_offset=offset, leader_epoch=self.epoch)
            offset += len(one) + gap
        if len(data) <= self.config.roll_bytes:
            for one in _split(bytes(data)):
                self.model.append(one)
            self.log.append_as_follower(data, leader_epoch=self.epoch, now_ms=self.now_ms)

    @rule()
    def elect(self) -> None:
        self.epoch += 1

    # Upkeep

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule()
    def flush(self) -> None:
        self.log.flush(self.now_ms)

    @rule(later_ms=st.integers(0, 12))
    def run_due(self, later_ms: int) -> None:
        self.now_ms += later_ms
        self.directory.run_due(self.now_ms)

    @rule()
    def checkpoint(self) -> None:
        self.directory.checkpoint({PARTITION: self.log.high_watermark})
        self.durable_start = self.model.start

    @rule(portion=portions)
    def advance_high_watermark(self, portion: float) -> None:
        offset = _between(self.model.high_watermark, self.model.end, portion)
        self.log.advance_high_watermark(offset)
        self.model.high_watermark = max(self.model.high_watermark, offset)

    @rule(portion=portions)
    def delete_records(self, portion: float) -> None:
        offset = _between(self.model.start, self.model.high_watermark, portion)
        self.log.delete_records(offset, self.now_ms)
        self.model.start = max(self.model.start, offset)

    @precondition(lambda self: not self.config.is_compacted)
    @rule()
    def apply_retention(self) -> None:
        size = sum(len(one.data) for one in self.model.batches)
        self.log.delete_old_segments(self.now_ms)
        first = self.log.segments.first.base_offset
        self.model.start = max(self.model.start, first)
        going = [one for one in self.model.batches if one.base_offset < first]
        assert all(one.last_offset < self.model.high_watermark for one in going)
        kept_enough = size - sum(len(one.data) for one in going) >= self.config.retention_bytes
        assert not going or kept_enough or self.model.start >= first
        self.model.batches = self.model.batches[len(going) :]

    @rule(portion=portions)
    def truncate(self, portion: float) -> None:
        # A leader's epochs and its end are where batches start.
        bounds = [*(one.base_offset for one in self.model.batches), self.model.end]
        offset = bounds[_between(0, len(bounds) - 1, portion)]
        self.log.truncate_to(offset, self.now_ms)
        self.model.truncate(offset)
        self._forget_past_the_end()

    @rule(further=st.integers(0, 20))
    def truncate_fully(self, further: int) -> None:
        offset = self.model.start + further
        self.log.truncate_fully(offset, self.now_ms)
        self.model = ModelLog(start=offset, end=offset, high_watermark=offset)
        self.floor = self.durable_start = offset
        self.cleaned_to = None

    def _forget_past_the_end(self) -> None:
        self.floor = min(self.floor, self.model.end)
        self.durable_start = min(self.durable_start, self.model.start)
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, self.model.end)

    @precondition(lambda self: self.config.is_compacted)
    @rule()
    def compact(self) -> None:
        before = self.model.batches
        dirty = find_dirty_range(self.log, self.cleaned_to, self.now_ms)
        if dirty.first_dirty_offset >= dirty.first_uncleanable_offset:
            return
        settings = CleanerSettings(dedupe_buffer_bytes=64 * SLOT_SIZE, io_buffer_bytes=128)
        self.cleaned_to = clean_log(self.files, self.log, dirty, self.now_ms, settings).end_offset
        after = [ModelBatch.of(stored.data) for stored in stored_batches(self.log)]
        self._check_compacted(before, after, dirty.first_uncleanable_offset)
        self.model.batches = after

    def _check_compacted(self, before: list[ModelBatch], after: list[ModelBatch], end: int) -> None:
        was = {record.offset: record for one in before for record in one.records}
        kept = {record.offset: record for one in after for record in one.records}
        for offset, record in kept.items():
            assert (record.key, record.value, record.timestamp) == (
                was[offset].key,
                was[offset].value,
                was[offset].timestamp,
            )
        assert [offset for offset in was if offset >= end] == [offset for offset in kept if offset >= end]
        latest = {record.key: record for record in self.model.committed(before)}
        for record in latest.values():
            # A tombstone goes when its time has come; any other latest value stays.
            assert record.value is None or record.offset in kept, f"the latest value of {record.key!r} is gone"

    # Stopping and starting

    @rule()
    def stop_cleanly(self) -> None:
        self.directory.close(self.now_ms)
        self.durable_start = self.model.start
        self._load()
        self._take_end()
        self.floor = self.model.end

    @rule()
    def kill(self) -> None:
        self.directory.abandon()
        self._note_flushed()
        self._load()
        self._take_end()
        self._take_start()

    @rule(seed=st.integers(0, 2**16))
    def cut_power(self, seed: int) -> None:
        """Lose some of the unsynced changes."""
        self.directory.abandon()
        self._note_flushed()
        rng = Random(seed)
        *_, last = crash_points(self.files, first=len(self.files.trace))
        odds = rng.random()
        state = last.state({index: last._random_fate(rng, operation, odds) for index, operation in last.pending})
        self.files = RecordingFiles(memory_files(state.tree).root)
        self._load()
        self._take_recovered()
        self._take_start()

    def _take_end(self) -> None:
        """Copy the log end to the model. A truncation into a gap is lost: the log ends after its last batch."""
        after_last = self.model.batches[-1].last_offset + 1 if self.model.batches else 0
        assert self.log.log_end_offset == max(after_last, self.log.segments.active.base_offset)
        self.model.end = self.log.log_end_offset
        self._forget_past_the_end()

    def _note_flushed(self) -> None:
        self.floor = max(self.floor, min(self.log.recovery_point, self.model.end))

    def _take_recovered(self) -> None:
        """Check that the log has everything that was flushed, and a prefix of the rest."""
        found = [stored.data for stored in stored_batches(self.log)]
        written = [one.data for one in self.model.batches]
        if found and written:
            first = written.index(found[0]) if found[0] in written else 0
            assert found == written[first : first + len(found)]
        missing = [one for one in self.model.batches if one.base_offset >= self.log.log_end_offset]
        assert all(one.base_offset >= self.floor for one in missing), "something is lost that was flushed"
        self.model.batches = [ModelBatch.of(data) for data in found]
        self._take_end()

    def _take_start(self) -> None:
        """Copy the log start to the model. It is that of the checkpoint, or a later one if segments were removed."""
        assert self.durable_start <= self.log.log_start_offset <= max(self.model.start, self.durable_start)
        self.model.start = self.model.high_watermark = self.log.log_start_offset
        self.floor = max(self.floor, 0)

    # Questions

    @rule(
        portion=portions,
        max_bytes=st.integers(0, 400),
        isolation=st.sampled_from(Isolation),
        at_least_one=st.booleans(),
    )
    def read(self, portion: float, max_bytes: int, isolation: Isolation, at_least_one: bool) -> None:
        offset = _between(self.model.start, self.model.end, portion)
        bound = {
            Isolation.LOG_END: self.model.end,
            Isolation.READ_UNCOMMITTED: self.model.high_watermark,
            Isolation.READ_COMMITTED: self.log.last_stable_offset,
        }[isolation]
        result = self.log.read(offset, max_bytes, isolation, at_least_one=at_least_one)
        data = result.slice.read() if result.slice else b""
        visible = self.model.data_from(offset, bound)
        everything = b"".join(one.data for one in visible)
        assert everything.startswith(data)
        limit = max(max_bytes, len(visible[0].data)) if at_least_one and visible and max_bytes >= 0 else max_bytes
        assert len(data) <= limit
        if visible and limit and len(data) < min(limit, len(everything)):
            # Short of both bounds only where a segment ends.
            ends_at = [segment.base_offset for segment in self.log.segments]
            sizes, position = set(), 0
            for one in visible:
                if one.base_offset in ends_at or any(one.base_offset > end > offset for end in ends_at):
                    sizes.add(position)
                position += len(one.data)
            assert len(data) in sizes
        if isolation is Isolation.READ_COMMITTED:
            whole = [one for one in visible if everything.find(one.data) + len(one.data) <= len(data)]
            assert result.aborted is not None
            expected = [record for record in self.model.committed(whole) if record.offset >= offset]
            seen = [record for record in as_consumer(whole, result.aborted) if record.offset >= offset]
            assert seen == expected

    @rule()
    def read_outside(self) -> None:
        for offset in (self.model.start - 1, self.model.end + 1):
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, 100)

    @rule(timestamp=timestamps)
    def look_up_by_time(self, timestamp: int) -> None:
        found = find_offset(self.log, timestamp)
        expected = self.model.first_at(timestamp, [segment.base_offset for segment in self.log.segments])
        assert (found and (found.offset, found.timestamp)) == (expected and (expected.offset, expected.timestamp))

    @rule()
    def look_up_the_latest_time(self) -> None:
        latest = max((record.timestamp for record in self.model.records()), default=None)
        found = find_offset(self.log, MAX_TIMESTAMP)
        if latest is not None and found is not None:
            first = next(record for record in self.model.records() if record.timestamp == latest)
            assert (found.offset, found.timestamp) == (first.offset, first.timestamp)

    # Always

    @invariant()
    def same(self) -> None:
        if hasattr(self, "log"):
            self.deleted_below = max(self.deleted_below, self.model.start)
            bounds = (self.log.log_start_offset, self.log.log_end_offset, self.log.high_watermark)
            assert bounds == (self.model.start, self.model.end, self.model.high_watermark)
            lowest, highest = self.model.last_stable_offsets()
            assert lowest <= self.log.last_stable_offset <= highest
            assert [stored.data for stored in stored_batches(self.log)] == [one.data for one in self.model.batches]
            check_log(self.log, self.deleted_below)


def _batch(records: list[tuple[bytes, bytes | None, int]], **options: object) -> bytearray:
    moments = [timestamp for _, _, timestamp in records]
    return batch(*[(key, value) for key, value, _ in records], timestamp=moments, **options)  # type: ignore[arg-type]


def _split(data: bytes) -> list[ModelBatch]:
    found = []
    while data:
        size = int.from_bytes(data[8:12], "big") + 12
        found.append(ModelBatch.of(data[:size]))
        data = data[size:]
    return found


def _between(low: int, high: int, portion: float) -> int:
    return low + round((high - low) * portion)


lean = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
thorough = settings(max_examples=1_500, stateful_step_count=80, deadline=None, suppress_health_check=list(HealthCheck))


def test_a_log_is_a_list_of_batches() -> None:
    run_state_machine_as_test(LogLikeAList, settings=lean)


@pytest.mark.slow
def test_a_log_is_a_list_of_batches_at_length() -> None:
    run_state_machine_as_test(LogLikeAList, settings=thorough)
