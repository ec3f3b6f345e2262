"""TwinLog: one log that is kept twice, by Apache Kafka and by Tailrace. Every call must give the same result.

Every call goes to both, results are compared at once, and `assert_same_files` compares the two folders byte for byte.
`run_script` makes a random sequence of calls from a seed, including hostile ones.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.recovery.recovery import open_log
from tailrace.log.watermarks import Isolation
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.errors import KafkaError
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleError

NAME = "topic-0"
ISOLATION = {
    "LOG_END": Isolation.LOG_END,
    "HIGH_WATERMARK": Isolation.READ_UNCOMMITTED,
    "TXN_COMMITTED": Isolation.READ_COMMITTED,
}


class TwinLog:
    def __init__(self, oracle: LogOracle, root: Path, settings: dict[str, str] | None = None) -> None:
        self.oracle = oracle
        self.settings = settings or {}
        self.config = parse_topic_config(self.settings)
        self.kafka_folder = root / "kafka" / NAME
        self.our_folder = root / "ours" / NAME
        self.log_start_offset = self.recovery_point = 0
        self.open(clean=True)

    @property
    def now_ms(self) -> int:
        return self.oracle.now_ms

    def open(self, *, clean: bool) -> None:
        self.kafka = self.oracle.open(
            self.kafka_folder,
            self.settings,
            log_start_offset=self.log_start_offset,
            recovery_point=self.recovery_point,
            clean_shutdown=clean,
        )
        self.ours: PartitionLog = open_log(
            DiskFiles(),
            str(self.our_folder),
            self.config,
            now_ms=self.now_ms,
            log_start_offset=self.log_start_offset,
            recovery_point=self.recovery_point,
            clean=clean,
        )
        self.ours.run_due(self.now_ms)
        self.assert_same_state()

    def append(self, data: bytes, *, leader_epoch: int = 0, origin: str = "CLIENT", version: int = 0) -> int | str:
        """Append, and return the first offset or the error's name, which must be the same for both."""
        try:
            info = self.kafka.append_as_leader(
                data, leader_epoch=leader_epoch, origin=origin, transaction_version=version or None
            )
            theirs: Any = (info.first_offset, info.last_offset, info.log_append_time, info.log_start_offset)
        except OracleError as error:
            theirs = error.code
        try:
            result = self.ours.append_as_leader(
                bytearray(data),
                leader_epoch=leader_epoch,
                origin=Origin[origin],
                now_ms=self.now_ms,
                transaction_version=version,
            )
            mine: Any = (
                result.first_offset,
                result.last_offset,
                result.log_append_time_ms,
                result.log_start_offset,
            )
        except KafkaError as error:
            mine = error.code.name
        self.ours.run_due(self.now_ms)
        assert mine == theirs
        return mine if isinstance(mine, str) else int(mine[0])

    def append_as_follower(self, data: bytes, *, leader_epoch: int = 2**31 - 1) -> None:
        info = self.kafka.append_as_follower(data, leader_epoch=leader_epoch)
        result = self.ours.append_as_follower(bytearray(data), leader_epoch=leader_epoch, now_ms=self.now_ms)
        assert result.last_offset == info.last_offset

    def set_high_watermark(self, offset: int) -> None:
        self.kafka.set_high_watermark(offset)
        self.ours.advance_high_watermark(offset)

    def roll(self) -> None:
        self.kafka.roll()
        self.ours.roll(self.now_ms)
        self.ours.run_due(self.now_ms)

    def flush(self) -> None:
        self.kafka.flush()
        self.ours.flush(self.now_ms)

    def delete_old_segments(self) -> int:
        theirs = self.kafka.delete_old_segments()
        mine = sum(self.ours.delete_old_segments(self.now_ms).values())
        self.ours.run_due(self.now_ms)
        assert mine == theirs
        return mine

    def delete_records(self, offset: int) -> bool | str:
        try:
            theirs: Any = self.kafka.delete_records(offset)
        except OracleError as error:
            theirs = error.code
        try:
            mine: Any = self.ours.delete_records(offset, self.now_ms)
        except KafkaError as error:
            mine = error.code.name
        self.ours.run_due(self.now_ms)
        assert mine == theirs
        return mine  # type: ignore[no-any-return]

    def truncate_to(self, offset: int) -> None:
        theirs = self.kafka.truncate_to(offset)
        assert self.ours.truncate_to(offset, self.now_ms) == theirs
        # Kafka reopens transactions that ended below the high watermark until the high watermark moves next; we do not.
        self.kafka.set_high_watermark(self.ours.high_watermark)
        self.ours.run_due(self.now_ms)

    def truncate_fully(self, offset: int) -> None:
        self.kafka.truncate_fully_and_start_at(offset)
        self.ours.truncate_fully(offset, self.now_ms)
        self.ours.run_due(self.now_ms)

    def advance_clock(self, ms: int) -> None:
        self.oracle.advance(ms)
        self.ours.run_due(self.now_ms)

    # Reading

    def _batch_of(self, offset: int) -> int:
        """Return the base offset of the batch that holds an offset.

        Kafka rounds a high watermark inside a batch (after DeleteRecords moved the log start there) down to the batch
        once it has looked it up, even below the log start. We keep the offset.
        """
        for segment in self.ours.segments:
            header = segment.find(offset)
            if header is not None:
                return header.base_offset
        return self.ours.log_end_offset

    def assert_same_state(self) -> None:
        state, ours = self.kafka.state(), self.ours
        mine = (
            ours.log_start_offset,
            ours.log_end_offset,
            self._batch_of(ours.high_watermark),
            self._batch_of(ours.last_stable_offset),
            ours.recovery_point,
            ours.size,
            ours.segments.base_offsets,
            [tuple(entry) for entry in ours.epochs.entries],
            ours.producers.latest_snapshot_offset,
            ours.producers.end_offset,
        )
        theirs = (
            state.log_start_offset,
            state.log_end_offset,
            self._batch_of(state.high_watermark),
            self._batch_of(state.last_stable_offset),
            state.recovery_point,
            state.size,
            state.segments,
            state.leader_epochs,
            state.producer_snapshot,
            state.producer_state_end,
        )
        assert mine == theirs
        for segment, kafka_segment in zip(ours.segments, self.kafka.segments(), strict=True):
            assert (segment.largest.timestamp, segment.largest.offset) == (
                kafka_segment.largest_timestamp,
                kafka_segment.offset_of_largest_timestamp,
            )
            assert (segment.offset_index.count, segment.time_index.count) == (
                kafka_segment.offset_index_entries,
                kafka_segment.time_index_entries,
            )
        producers = self.kafka.producers()
        mine_producers = sorted(
            (
                state.producer_id,
                state.producer_epoch,
                state.coordinator_epoch,
                state.last_timestamp,
                state.transaction_first_offset,
                [(batch.first_sequence, batch.last_sequence, batch.last_offset) for batch in state.batches],
            )
            for state in ours.producers.producers.values()
        )
        assert mine_producers == [
            (
                state.producer_id,
                state.producer_epoch,
                state.coordinator_epoch,
                state.last_timestamp,
                state.current_transaction_first_offset,
                [(batch.first_sequence, batch.last_sequence, batch.last_offset) for batch in state.batches],
            )
            for state in producers.producers
        ]

    def assert_same_read(self, offset: int, max_bytes: int, isolation: str, min_one: bool) -> None:
        try:
            answer = self.kafka.read(offset, max_bytes, isolation=isolation, min_one=min_one)  # type: ignore[arg-type]
            theirs: Any = (
                self._batch_of(answer.position.offset),
                answer.position.segment_base_offset,
                answer.position.position,
                answer.records,
                answer.first_entry_incomplete,
                answer.aborted_transactions,
            )
        except OracleError as error:
            theirs = error.code
        try:
            read = self.ours.read(offset, max_bytes, ISOLATION[isolation], at_least_one=min_one)
            aborted = None if read.aborted is None else [(one.producer_id, one.first_offset) for one in read.aborted]
            mine: Any = (
                self._batch_of(read.position.offset),
                read.position.segment_base_offset,
                read.position.position,
                read.slice.read() if read.slice else b"",
                read.first_entry_incomplete,
                aborted,
            )
        except KafkaError as error:
            mine = error.code.name
        assert mine == theirs, f"read of {max_bytes} at {offset}, {isolation}, min_one={min_one}"

    def assert_same_lookups(self, timestamps: list[int]) -> None:
        answers = self.kafka.offsets_by_timestamp(timestamps)
        for timestamp, answer in zip(timestamps, answers, strict=True):
            found = find_offset(self.ours, timestamp)
            mine = None if found is None else (found.timestamp, found.offset, found.leader_epoch)
            theirs = None if answer is None else (answer.timestamp, answer.offset, answer.leader_epoch)
            assert mine == theirs, timestamp

    def assert_same_epoch_ends(self, epochs: range) -> None:
        for epoch in epochs:
            end = self.ours.end_of_epoch(epoch)
            assert (None if end.end_offset == -1 else tuple(end)) == self.kafka.end_offset_for_epoch(epoch)

    # Stopping

    def shut_down(self) -> None:
        """Stop cleanly, with the checkpoints that a broker would write."""
        self._note_checkpoints()
        self.kafka.shut_down()
        self.ours.flush(self.now_ms)
        self.ours.close()
        self.recovery_point = self.ours.recovery_point

    def crash(self) -> None:
        self._note_checkpoints()
        self.kafka.crash()
        self.ours.abandon()

    def _note_checkpoints(self) -> None:
        self.log_start_offset = self.ours.log_start_offset
        self.recovery_point = self.ours.recovery_point

    def assert_same_files(self) -> None:
        mine, theirs = _content(self.our_folder), _content(self.kafka_folder)
        assert sorted(mine) == sorted(theirs), "different files"
        for name in mine:
            assert mine[name] == theirs[name], name


def _content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the files, except indexes that are being deleted: Kafka leaves preallocated zeros in them."""
    return {
        path.name: b"" if path.name.endswith("index.deleted") else path.read_bytes()
        for path in folder.iterdir()
        if path.is_file()
    }


class Script:
    """A random sequence of calls; the same seed gives the same sequence."""

    def __init__(self, twin: TwinLog, seed: int, codecs: list[Codec] | None = None) -> None:
        self.twin = twin
        self.random = random.Random(seed)
        self.codecs = codecs or list(Codec)
        self.epoch = 0
        self.sequences: dict[tuple[int, int], int] = {}
        self.producer_epochs: dict[int, int] = {}
        self.open: set[int] = set()
        self.last: bytes | None = None

    def run(self, steps: int) -> None:
        actions = [
            (self.append_plain, 6),
            (self.append_idempotent, 4),
            (self.append_transactional, 4),
            (self.end_transaction, 3),
            (self.repeat_last, 1),
            (self.append_hostile, 1),
            (self.move_clock, 2),
            (self.move_high_watermark, 4),
            (self.twin.roll, 1),
            (self.twin.flush, 1),
            (self.new_epoch, 1),
            (self.delete_records, 1),
            (self.twin.delete_old_segments, 1),
            (self.truncate, 1),
            (self.reopen, 1),
            (self.read, 6),
            (self.lookup, 3),
        ]
        weights = [weight for _, weight in actions]
        for _ in range(steps):
            self.random.choices(actions, weights)[0][0]()
            self.twin.assert_same_state()
        self.read_everything()

    def timestamp(self) -> int:
        return self.twin.now_ms + self.random.choice([0, 0, -1, -5, -1000, 7, self.random.randrange(-5000, 3000)])

    def batch(self, **fields: Any) -> bytes:
        builder = BatchBuilder(codec=self.random.choice(self.codecs), **fields)
        for _ in range(self.random.choice([1, 1, 2, 5, 30])):
            key = self.random.choice([None, b"k%d" % self.random.randrange(20)])
            value = self.random.choice([None, self.random.randbytes(self.random.choice([0, 5, 100, 400]))])
            headers = [("h", b"x")] if self.random.random() < 0.1 else []
            builder.append(self.timestamp(), key, value, headers)
        return builder.build()

    def append_plain(self) -> None:
        self.last = self.batch()
        self.twin.append(self.last, leader_epoch=self.epoch)

    def producer(self, *, transactional: bool) -> int:
        return self.random.randrange(1000, 1020) + (100_000 if transactional else 0)

    def _append_from(self, producer_id: int, transactional: bool) -> None:
        epoch = self.producer_epochs.setdefault(producer_id, 0)
        if self.random.random() < 0.05 and producer_id not in self.open:
            epoch = self.producer_epochs[producer_id] = epoch + 1
        sequence = self.sequences.get((producer_id, epoch), 0)
        if self.random.random() < 0.05:
            sequence += self.random.choice([1, -1, 5])
        data = self.batch(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=max(sequence, 0),
            transactional=transactional,
        )
        self.last = data
        if not isinstance(self.twin.append(data, leader_epoch=self.epoch), str):
            self.sequences[producer_id, epoch] = max(sequence, 0) + int.from_bytes(data[57:61], "big")
            if transactional:
                self.open.add(producer_id)

    def append_idempotent(self) -> None:
        self._append_from(self.producer(transactional=False), False)

    def append_transactional(self) -> None:
        self._append_from(self.producer(transactional=True), self.random.random() > 0.02)

    def end_transaction(self) -> None:
        producer_id = self.random.choice(sorted(self.open) or [self.producer(transactional=True)])
        kind = self.random.choice([ControlType.COMMIT, ControlType.ABORT])
        marker = build_end_marker(
            EndTransactionMarker(kind, self.random.choice([0, 0, 0, 1])),
            timestamp=self.twin.now_ms,
            producer_id=producer_id,
            producer_epoch=max(self.producer_epochs.get(producer_id, 0) + self.random.choice([0, 0, 0, -1, 1]), 0),
        )
        if isinstance(self.twin.append(marker, leader_epoch=self.epoch, origin="COORDINATOR"), int):
            self.open.discard(producer_id)
            self.producer_epochs[producer_id] = int.from_bytes(marker[51:53], "big", signed=True)

    def repeat_last(self) -> None:
        if self.last is not None:
            self.twin.append(self.last, leader_epoch=self.epoch)

    def append_hostile(self) -> None:
        data = bytearray(self.batch())
        for _ in range(self.random.choice([1, 2])):
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        self.twin.append(bytes(data), leader_epoch=self.epoch)

    def move_clock(self) -> None:
        self.twin.advance_clock(self.random.choice([1, 50, 1000, 20_000, 70_000]))

    def move_high_watermark(self) -> None:
        log = self.twin.ours
        later = [end for end in self.batch_ends() if end > log.high_watermark]
        self.twin.set_high_watermark(self.random.choice([log.log_end_offset, *later]))

    def batch_ends(self) -> list[int]:
        return [header.next_offset for segment in self.twin.ours.segments for header in segment.headers()]

    def new_epoch(self) -> None:
        self.epoch += self.random.choice([1, 3])

    def delete_records(self) -> None:
        log = self.twin.ours
        self.twin.delete_records(self.random.randint(log.log_start_offset, log.high_watermark + 1))

    def truncate(self) -> None:
        log = self.twin.ours
        ends = [end for end in self.batch_ends() if end >= log.high_watermark - 5]
        self.twin.truncate_to(self.random.choice([*ends, log.log_end_offset, log.log_end_offset + 1]))
        self._forget_producers()

    def _forget_producers(self) -> None:
        self.open = {
            state.producer_id
            for state in self.twin.ours.producers.producers.values()
            if state.transaction_first_offset is not None
        }
        for state in self.twin.ours.producers.producers.values():
            self.sequences[state.producer_id, state.producer_epoch] = state.last_sequence + 1
            self.producer_epochs[state.producer_id] = state.producer_epoch

    def reopen(self) -> None:
        if self.random.random() < 0.5:
            self.twin.shut_down()
            self.twin.assert_same_files()
            self.twin.open(clean=True)
        else:
            self.twin.crash()
            self.twin.open(clean=False)
        self.twin.set_high_watermark(self.twin.ours.log_end_offset)

    def read(self) -> None:
        log = self.twin.ours
        self.twin.assert_same_read(
            self.random.randint(log.log_start_offset - 1, log.log_end_offset + 1),
            self.random.choice([0, 1, 100, 1000, 10_000, 2**31 - 1]),
            self.random.choice(list(ISOLATION)),
            self.random.random() < 0.5,
        )

    def lookup(self) -> None:
        self.twin.assert_same_lookups([-5, -4, -3, -2, -1, *[self.timestamp() for _ in range(10)]])
        self.twin.assert_same_epoch_ends(range(-1, self.epoch + 2))

    def read_everything(self) -> None:
        log = self.twin.ours
        for offset in range(log.log_start_offset, log.log_end_offset + 1):
            self.twin.assert_same_read(offset, 2000, "TXN_COMMITTED", False)
