"""A log directory over recorded files, and what a crash at any point of its life may leave.

`Driver.run` notes where an action begins and ends in the trace. A crash inside it may leave what was legal before or
what is legal after; from its end on only the latter. What is legal of a partition is an `Outcome`:

- its batches are a slice of `history`, byte for byte, without a hole;
- the slice ends no earlier than `floor`, up to the offset that the log reported as durable;
- what it lacks in front lies below `max_start`, and the log start offset lies in [min_start, max_start].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product

from tailrace.log.compaction.cleaner import CleanerSettings, clean_log
from tailrace.log.compaction.cleaner_checkpoint import CleanerCheckpoint
from tailrace.log.compaction.cleaner_kernels import SLOT_SIZE
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.compaction.proposal import take
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.new_logs import NewLog
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.batches import StoredBatch, stored_batches
from tests.support.memory_files import MemoryFiles
from tests.support.proposals import propose
from tests.support.recording_files import RecordingFiles

ROOT = "/data"
NOW = 1_000_000
SMALL_CLEANER = CleanerSettings(dedupe_buffer_bytes=64 * SLOT_SIZE, io_buffer_bytes=256)


@dataclass(frozen=True)
class Outcome:
    history: tuple[StoredBatch, ...] = ()
    end: int = 0
    floor: int = 0
    min_start: int = 0
    max_start: int = 0
    topic_id: TopicId | None = None

    def problem(self, batches: tuple[StoredBatch, ...], start: int, end: int, topic_id: TopicId | None) -> str | None:
        """Return the reason why a recovered log is not this outcome, or None if it is."""
        if topic_id != self.topic_id:
            return f"topic id {topic_id}, not {self.topic_id}"
        if not self.min_start <= start <= self.max_start:
            return f"log start offset {start}, not in [{self.min_start}, {self.max_start}]"
        if not self.floor <= end <= self.end:
            return f"log end offset {end}, not in [{self.floor}, {self.end}]"
        if not batches:
            kept = [batch for batch in self.history if max(self.max_start, start) <= batch.base_offset < end]
            return f"no batches, {len(kept)} expected" if kept else None
        if batches[0] not in self.history:
            return f"the first batch, at offset {batches[0].base_offset}, was never appended"
        first = self.history.index(batches[0])
        if first and self.history[first - 1].next_offset > self.max_start:
            return f"it begins at {batches[0].base_offset}, but only what is below {self.max_start} may be missing"
        for actual, wanted in zip(batches, self.history[first:], strict=False):
            if actual != wanted:
                offsets = f"{actual.base_offset}..{actual.next_offset - 1}"
                return f"the batch at offsets {offsets} is not the one that was appended at {wanted.base_offset}"
        if len(batches) > len(self.history) - first:
            return f"more batches than were appended: {batches[len(self.history) - first :]}"
        missing = [batch for batch in self.history[first + len(batches) :] if batch.base_offset < end]
        return f"offset {missing[0].base_offset} is missing, though the log ends at {end}" if missing else None


@dataclass(frozen=True)
class Expectation:
    """The allowed states: the outcomes of each partition, with None if it may be gone, and if the stop is clean."""

    partitions: dict[TopicPartition, tuple[Outcome | None, ...]]
    must_be_clean: bool = False

    def or_else(self, other: Expectation) -> Expectation:
        names = self.partitions.keys() | other.partitions.keys()
        return Expectation(
            {
                name: tuple(dict.fromkeys(self.partitions.get(name, (None,)) + other.partitions.get(name, (None,))))
                for name in names
            }
        )


class Driver:
    def __init__(
        self, config: TopicConfig, files: MemoryFiles | None = None, expected: Expectation | None = None
    ) -> None:
        """Begin with nothing, or with what a crash left and what may be found in it."""
        self.config = config
        start = files or MemoryFiles()
        start.make_directory(ROOT)
        self.files = RecordingFiles(start.root)
        self.now_ms = NOW
        self.outcomes: dict[TopicPartition, Outcome] = {}
        self._ids = iter(range(1, 1_000_000))
        self._last = expected or Expectation({})
        self._spans: list[tuple[int, int, Expectation, Expectation]] = [(0, 0, self._last, self._last)]
        self.run(self._begin)

    def _begin(self) -> None:
        self.directory = self._open()
        for name, log in self.directory.logs.items():
            view = (tuple(stored_batches(log)), log.log_start_offset, log.log_end_offset, log.topic_id)
            (found, *_) = [outcome for outcome in self._last.partitions[name] if outcome and not outcome.problem(*view)]
            batches, start, end, topic_id = view
            self.outcomes[name] = Outcome(batches, end, found.floor, found.min_start, start, topic_id)

    def _open(self) -> LogDirectory:
        directory = LogDirectory(self.files, ROOT, new_id=lambda: f"id{next(self._ids)}")
        directory.load(lambda topic: self.config, self.now_ms)
        return directory

    @property
    def deleted_below(self) -> int:
        """The highest log start that any log has had."""
        outcomes = [one for *_, after in self._spans for some in after.partitions.values() for one in some if one]
        return max((outcome.max_start for outcome in outcomes), default=0)

    def expectation_at(self, index: int) -> Expectation:
        """Return the states that a crash after `index` operations of the trace may leave."""
        found = Expectation({})
        for start, end, during, after in self._spans:
            if index < start:
                break
            if index > start or index >= end:
                found = after if index >= end else during
        return found

    def run(
        self,
        action: Callable[[], object],
        *,
        meanwhile: dict[TopicPartition, list[Outcome]] | None = None,
        clean: bool = False,
    ) -> None:
        """Do something and note what may be found after a crash meanwhile and afterwards."""
        start = len(self.files.trace)
        action()
        after = Expectation({partition: (outcome,) for partition, outcome in self.outcomes.items()}, clean)
        during = self._last.or_else(after)
        for partition, outcomes in (meanwhile or {}).items():
            during.partitions[partition] += tuple(outcomes)
        self._spans.append((start, len(self.files.trace), during, after))
        self._last = after

    # What can be done to a log

    def log(self, partition: TopicPartition) -> PartitionLog:
        return self.directory.logs[partition]

    def create(self, topic: str = "t", topic_id: TopicId | None = None) -> TopicPartition:
        partition = TopicPartition(topic, 0)

        def act() -> None:
            self.directory.create(partition, self.config, self.now_ms, topic_id)
            self.outcomes[partition] = Outcome(topic_id=topic_id)

        self.run(act, meanwhile={partition: [Outcome()]})
        return partition

    def create_all(self, topics: dict[str, TopicId], leader_epoch: int) -> None:
        """Create one partition of each topic in one call."""
        wanted = [NewLog(TopicPartition(name, 0), self.config, id_, leader_epoch) for name, id_ in topics.items()]
        meanwhile: dict[TopicPartition, list[Outcome]] = {new.partition: [Outcome()] for new in wanted}

        def act() -> None:
            for log in self.directory.create_unregistered(wanted, self.now_ms):
                self.directory.add(log)
                self.outcomes[log.partition] = Outcome(topic_id=log.topic_id)

        self.run(act, meanwhile=meanwhile)

    def append(self, partition: TopicPartition, data: bytearray, *, leader_epoch: int = 0, **options: object) -> None:
        def act() -> None:
            log = self.log(partition)
            log.append_as_leader(data, leader_epoch=leader_epoch, now_ms=self.now_ms, **options)  # type: ignore[arg-type]
            self._appended(partition)

        self.run(act)

    def append_as_follower(self, partition: TopicPartition, data: bytearray, *, leader_epoch: int = 0) -> None:
        def act() -> None:
            self.log(partition).append_as_follower(data, leader_epoch=leader_epoch, now_ms=self.now_ms)
            self._appended(partition)

        self.run(act)

    def _appended(self, partition: TopicPartition) -> None:
        log, before = self.log(partition), self.outcomes[partition]
        new = tuple(batch for batch in stored_batches(log) if batch.base_offset >= before.end)
        self._now(partition, history=before.history + new)

    def _now(self, partition: TopicPartition, **changes: object) -> None:
        """Return the outcome after an action: everything below the recovery point is durable."""
        log, before = self.log(partition), self.outcomes[partition]
        # Deleting records takes the recovery point along without anything having been flushed.
        durable = before.floor if log.recovery_point == log.log_start_offset else log.recovery_point
        self.outcomes[partition] = replace(
            before,
            end=log.log_end_offset,
            floor=min(max(before.floor, durable), log.log_end_offset),
            max_start=log.log_start_offset,
            **changes,  # type: ignore[arg-type]
        )

    def change(self, partition: TopicPartition, action: Callable[[PartitionLog], object], **changes: object) -> None:
        """Change the log without changing its batches: roll, flush, retention, delete records, or deferred work."""

        def act() -> None:
            action(self.log(partition))
            self._now(partition, **changes)

        self.run(act)

    def truncate(self, partition: TopicPartition, offset: int) -> None:

        def act() -> None:
            log, before = self.log(partition), self.outcomes[partition]
            log.truncate_to(offset, self.now_ms)
            history = tuple(batch for batch in before.history if batch.next_offset <= offset)
            end = log.log_end_offset
            self.outcomes[partition] = replace(before, history=history, end=end, floor=min(before.floor, end))
            self._now(partition)

        # Segments go one by one, the last one first.
        before = self.outcomes[partition]
        self.run(act, meanwhile={partition: [replace(before, floor=min(before.floor, offset))]})

    def truncate_fully(self, partition: TopicPartition, offset: int) -> None:
        def act() -> None:
            self.log(partition).truncate_fully(offset, self.now_ms)
            # The log start is durable with the first segment's name or the next checkpoint.
            self.outcomes[partition] = replace(self.outcomes[partition], history=(), end=offset, floor=0, min_start=0)
            self._now(partition)

        self.run(act, meanwhile={partition: [replace(self.outcomes[partition], floor=0)]})

    def compact(self, partition: TopicPartition) -> None:
        """Clean the log; each group of segments is swapped as a whole."""
        log = self.log(partition)
        checkpoint = CleanerCheckpoint(self.files, ROOT)
        with self._swaps_watched(partition):
            dirty = find_dirty_range(log, checkpoint.read().get(partition), self.now_ms)
            cleaned = clean_log(self.files, log, dirty, self.now_ms, SMALL_CLEANER)
        self.run(lambda: checkpoint.update(partition, cleaned.end_offset, self.directory.logs))

    def propose(self, partition: TopicPartition) -> None:
        """Write what a compaction would leave as a proposal, as a job beside the log does."""
        log = self.log(partition)

        def act() -> None:
            clean_to = CleanerCheckpoint(self.files, ROOT).read().get(partition)
            propose(self.files, log, clean_to, self.now_ms, SMALL_CLEANER)

        self.run(act)

    def take_proposal(self, partition: TopicPartition) -> None:
        """Swap a proposal in, as the broker does."""
        log = self.log(partition)
        checkpoint = CleanerCheckpoint(self.files, ROOT)
        clean_to = checkpoint.read().get(partition)
        with self._swaps_watched(partition):
            clean = take(
                self.files,
                log.directory,
                log.segments,
                log.config,
                lambda new, old: log.replace_segments(new, old, self.now_ms),
                clean_to=clean_to,
                end=find_dirty_range(log, clean_to, self.now_ms).first_uncleanable_offset,
            )
        assert clean is not None
        self.run(lambda: checkpoint.update(partition, clean, self.directory.logs))

    @contextmanager
    def _swaps_watched(self, partition: TopicPartition) -> Iterator[None]:
        log = self.log(partition)
        replace_segments = log.replace_segments

        def swap(new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
            # Segments past the end of the new one hold nothing that is needed; any of them may be back after a crash.
            end = new[-1].next_offset()
            beyond = [
                [StoredBatch(header.base_offset, header.next_offset, bytes(view)) for header, view in segment.batches()]
                for segment in old
                if segment.base_offset >= end
            ]
            back: list[Outcome] = []

            def act() -> None:
                replace_segments(new, old, now_ms)
                after = tuple(stored_batches(log))
                for some in product((False, True), repeat=len(beyond)):
                    extra = [one for is_back, batches in zip(some, beyond, strict=True) if is_back for one in batches]
                    back.append(replace(self.outcomes[partition], history=tuple(sorted([*after, *extra]))))
                self._now(partition, history=after)

            self.run(act, meanwhile={partition: back})

        log.replace_segments = swap  # type: ignore[method-assign]
        try:
            yield
        finally:
            del log.replace_segments

    def checkpoint(self) -> None:
        def act() -> None:
            self.directory.checkpoint({name: log.high_watermark for name, log in self.directory.logs.items()})
            for name, log in self.directory.logs.items():
                self.outcomes[name] = replace(self.outcomes[name], min_start=log.log_start_offset)

        self.run(act)

    def delete(self, partition: TopicPartition) -> None:
        def act() -> None:
            self.directory.delete(partition, self.now_ms)
            del self.outcomes[partition]

        self.run(act)

    def run_due(self, later_ms: int = 0) -> None:
        self.now_ms += later_ms

        def act() -> None:
            self.directory.run_due(self.now_ms)
            for name in self.directory.logs:
                self._now(name)

        self.run(act)

    def close(self) -> None:
        """Stop cleanly."""

        def act() -> None:
            self.directory.close(self.now_ms)
            for name, log in self.directory.logs.items():
                start = log.log_start_offset
                self.outcomes[name] = replace(self.outcomes[name], floor=log.log_end_offset, min_start=start)

        self.run(act, clean=True)

    def reopen(self) -> None:
        """Start again; after `close` that is a clean start, otherwise as after a crash that lost nothing."""

        def act() -> None:
            self.directory = self._open()
            for name in self.directory.logs:
                self._now(name)

        if not self._last.must_be_clean:
            self.directory.abandon()
        self.run(act)
