"""DirectoryWork: the work that the logs of a directory, and the directory itself, leave to another thread.

At first everything is done at once. After `begin`, another thread creates logs, writes epochs and checkpoints, and
syncs sealed segments and other data that no request waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush

from tailrace.log.directories.epoch_writes import EpochWrites
from tailrace.log.directories.sealed_flush import LogFlush, SealedFlush
from tailrace.log.directories.serial_work import FolderSync, SerialWork, Submit, Task
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.open_segments import OpenSegments
from tailrace.log.segments.segment import Segment
from tailrace.log.upkeep.log_owner import LogOwner
from tailrace.model.ids import Offset, TopicPartition
from tailrace.waiting.chore import Chore, run_now

EPOCHS_AT_ONCE = 100  # files that are written before other work gets its turn


class DirectoryWork(LogOwner[PartitionLog]):
    def __init__(
        self,
        files: Files,
        write_checkpoints: Callable[[], None],
        on_failure: Callable[[OSError], object],
        open_segments: OpenSegments,
    ) -> None:
        self._files = files
        self._write_checkpoints = write_checkpoints
        self.on_failure = on_failure
        self._open_segments = open_segments
        self._submit: Submit | None = None  # runs work on another thread, in any order
        self._serial: SerialWork | None = None  # runs work on another thread, in order
        self._due_ms: dict[TopicPartition, int] = {}  # when the deferred work of a log is due
        self._due: list[tuple[int, TopicPartition]] = []  # a heap of the same; entries that differ are outdated
        self._flushing: set[PartitionLog] = set()  # logs with a SealedFlush that has not ended
        self._unwritten: set[TopicPartition] = set()  # logs with epochs that are not in their file yet

    def begin(self, submit: Submit, on_failure: Callable[[OSError], object], logs: Iterable[PartitionLog]) -> None:
        """Run the work on another thread from now on. `logs` are the logs that exist already."""
        self._submit, self._serial, self.on_failure = submit, SerialWork(submit), on_failure
        for log in logs:
            self._write_epochs_later(log)

    def own(self, log: PartitionLog) -> None:
        """Do the work of a log from now on."""
        log.attach(self)
        if self._serial is not None:
            self._write_epochs_later(log)

    def _write_epochs_later(self, log: PartitionLog) -> None:
        log.epochs.write_by(partial(self._unwritten.add, log.partition))

    # For logs

    def write_checkpoints(self) -> None:
        self._write_checkpoints()

    def watch(self, segments: Iterable[Segment]) -> None:
        self._open_segments.watch(segments)

    def remove_files(self, files: Files, paths: Sequence[str]) -> None:
        if self._submit is None:
            super().remove_files(files, paths)
        else:
            self._submit(Task(partial(super().remove_files, files, paths), self.on_failure))

    def sync_folder(self, files: Files, path: str, synced: Callable[[], object]) -> None:
        if self._serial is None:
            super().sync_folder(files, path, synced)
        else:
            self._serial.add(FolderSync(files, path, synced, self.on_failure))

    def note_deferred(self, partition: TopicPartition, due_ms: int) -> None:
        self._due_ms[partition] = due_ms
        heappush(self._due, (due_ms, partition))

    def flush_sealed(self, log: PartitionLog, following: Segment, now_ms: int) -> None:
        if self._submit is None:
            super().flush_sealed(log, following, now_ms)
        elif log not in self._flushing:
            self._flush_from(log, log.recovery_point)

    def _flush_from(self, log: PartitionLog, start: Offset) -> None:
        """Flush the sealed segments from an offset on, some at a time."""
        if start < log.segments.active.base_offset and self._submit is not None:
            self._flushing.add(log)
            self._submit(SealedFlush(self._files, log, start, self._flush_from, self._flush_failed))
        else:
            self._flushing.discard(log)

    def _flush_failed(self, log: PartitionLog, error: OSError) -> None:
        self._flushing.discard(log)
        self.on_failure(error)

    def flush_soon(self, log: PartitionLog, end: Offset, now_ms: int) -> None:
        if self._submit is None:
            super().flush_soon(log, end, now_ms)
        else:
            self._submit(LogFlush(self._files, log, end, self.on_failure))

    # For the directory

    def add(self, work: Chore, now_ms: int) -> None:
        """Run work after all work that was added before."""
        if self._serial is None:
            run_now(work, now_ms)
        else:
            self._serial.add(work)

    def add_unordered(self, work: Chore, now_ms: int) -> None:
        """Run work that may take long and need not wait for other work."""
        if self._submit is None:
            run_now(work, now_ms)
        else:
            self._submit(work)

    def run_due(self, logs: Mapping[TopicPartition, PartitionLog], now_ms: int, at_most: int) -> int:
        """Write epochs, and run up to `at_most` deferred actions of the logs. Return their number."""
        if self._unwritten and self._serial is not None:
            behind = [
                log.epochs
                for key in self._unwritten
                if (log := logs.get(key)) is not None and log.epochs.is_behind(log.log_end_offset)
            ]
            self._unwritten.clear()
            for first in range(0, len(behind), EPOCHS_AT_ONCE):
                self._serial.add(EpochWrites(self._files, behind[first : first + EPOCHS_AT_ONCE], self.on_failure))
        done = 0
        while done < at_most and self._due and self._due[0][0] <= now_ms:
            due_ms, partition = heappop(self._due)
            if self._due_ms.get(partition) != due_ms:
                continue
            del self._due_ms[partition]
            log = logs.get(partition)
            if log is not None:
                try:
                    done += log.run_due(now_ms, at_most - done)
                finally:
                    if log.deferred.next_due_ms is not None:
                        self.note_deferred(partition, log.deferred.next_due_ms)
        return done
