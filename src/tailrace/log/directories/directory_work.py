"""DirectoryWork: the work that the logs of a directory, and the directory itself, leave to another thread.

At first everything is done at once. After `begin`, another thread creates logs, writes epochs and checkpoints, and
syncs sealed segments and other data that no request waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from tailrace.log.directories.epoch_writes import EpochWrites
from tailrace.log.directories.sealed_flush import LogFlush, SealedFlush
from tailrace.log.directories.serial_work import SerialWork, Submit, Task, Work, do_at_once
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.open_segments import OpenSegments
from tailrace.log.segments.segment import Segment
from tailrace.log.upkeep.log_owner import LogOwner
from tailrace.model.ids import Offset, TopicPartition

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
        self._deferring: set[TopicPartition] = set()  # logs with deferred work
        self._unwritten: set[TopicPartition] = set()  # logs with epochs that are not in their file yet

    def begin(self, submit: Submit, on_failure: Callable[[OSError], object], logs: Iterable[PartitionLog]) -> None:
        """Run the work on another thread from now on. `logs` are the logs that exist already."""
        self._submit, self._serial, self.on_failure = submit, SerialWork(submit), on_failure
        for log in logs:
            self._write_epochs_later(log)

    def own(self, log: PartitionLog) -> None:
        """Do the work of a log from now on."""
        log.attach(self)
        self._deferring.add(log.partition)
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

    def note_deferred(self, partition: TopicPartition) -> None:
        self._deferring.add(partition)

    def flush_sealed(self, log: PartitionLog, following: Segment, now_ms: int) -> None:
        if self._submit is None:
            super().flush_sealed(log, following, now_ms)
        else:
            self._submit(SealedFlush(self._files, log, following, self.on_failure))

    def flush_soon(self, log: PartitionLog, end: Offset, now_ms: int) -> None:
        if self._submit is None:
            super().flush_soon(log, end, now_ms)
        else:
            self._submit(LogFlush(self._files, log, end, self.on_failure))

    # For the directory

    def add(self, work: Work, now_ms: int) -> None:
        """Run work after all work that was added before."""
        if self._serial is None:
            do_at_once(work, now_ms)
        else:
            self._serial.add(work)

    def add_unordered(self, work: Work, now_ms: int) -> None:
        """Run work that may take long and need not wait for other work."""
        if self._submit is None:
            do_at_once(work, now_ms)
        else:
            self._submit(work)

    def run_due(self, logs: Mapping[TopicPartition, PartitionLog], now_ms: int) -> int:
        """Write epochs, and run the deferred work of the logs. Return the number of steps."""
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
        for partition in list(self._deferring):  # few of thousands of logs have deferred work
            log = logs.get(partition)
            if log is not None:
                done += log.run_due(now_ms)
            if log is None or not log.deferred:
                self._deferring.discard(partition)
        return done
