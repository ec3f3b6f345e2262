"""LogDirectory: the partition logs below one log.dir: create, load, delete, checkpoint.

The directory belongs to one process at a time, which holds its `.lock`. The clean-shutdown marker is written last on a
clean stop and removed first on the next start. A crash during loading therefore counts as an unclean stop.

    meta.properties                      the ids of cluster, node and directory
    recovery-point-offset-checkpoint     the offset up to which each log is known to be durable
    log-start-offset-checkpoint          the start of a log, if it is not at its first segment
    replication-offset-checkpoint        high watermarks
    cleaner-offset-checkpoint            the offset up to which each log is compacted
    .kafka_cleanshutdown                 the last stop was clean

A partition that is being moved here from another directory is in a `-future` folder, and not yet one of the `logs`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from tailrace.log.directories.directory_checkpoints import CheckpointWrites, DirectoryCheckpoints
from tailrace.log.directories.directory_work import DirectoryWork
from tailrace.log.directories.log_renames import RENAMED_AT_ONCE, LogRenames
from tailrace.log.directories.new_logs import NewLog, make_logs
from tailrace.log.directories.partition_folders import partition_folders
from tailrace.log.directories.serial_work import Submit, Task, retrying_submit
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, read_clean_shutdown, write_clean_shutdown
from tailrace.log.disk.directory_lock import lock_directory
from tailrace.log.disk.files import Files, Space, join
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import RecoveryReport, no_jitter, open_log
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.open_segments import OpenSegments
from tailrace.log.upkeep.deferred import Deferred
from tailrace.model.errors import KafkaError
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.model.shortage import is_shortage
from tailrace.model.topic_config import INT_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch
from tailrace.waiting.chore import Chore

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadReport:
    """The result of loading a directory."""

    was_clean: bool
    previous_broker_epoch: int
    recoveries: dict[TopicPartition, RecoveryReport] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # folder → the reason why its log could not be opened


class LogDirectory:
    def __init__(
        self,
        files: Files,
        path: str,
        *,
        new_id: Callable[[], str],
        directory_id: bytes = bytes(16),
        new_jitter_ms: Callable[[TopicConfig], int] | None = None,
        producer_expiration_ms: int = 86_400_000,
        open_segments: OpenSegments | None = None,
    ) -> None:
        self._files = files
        self.path = path
        self.id = directory_id  # the id of the directory in the metadata
        self._new_id = new_id
        self._new_jitter_ms = new_jitter_ms
        self._producer_expiration_ms = producer_expiration_ms
        self._deferred = Deferred()
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.futures: dict[TopicPartition, PartitionLog] = {}  # copies of logs that are still in other directories
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        self._is_loading = False
        self._was_clean = True
        self.offline: set[TopicPartition] = set()  # partitions that could not be opened
        self.failure: OSError | None = None  # why the directory cannot be used
        self.being_created = 0  # logs that are being created
        self._work = DirectoryWork(files, self.checkpoint, self.fail, open_segments or OpenSegments())
        self._unwanted: list[str] = []  # folders to be deleted
        self._checkpoints = DirectoryCheckpoints(files, path)
        self._lock = lock_directory(files, path)

    def _file(self, name: str) -> str:
        return join(self.path, name)

    # Loading

    def load(
        self,
        config_of: Callable[[str], TopicConfig],
        now_ms: int,
        progress: Callable[[int, int, TopicPartition], None] | None = None,
    ) -> LoadReport:
        """Open every partition. A partition that cannot be opened is reported and left alone. The others are served."""
        self._is_loading = True
        marker = self._file(file_names.CLEAN_SHUTDOWN)
        broker_epoch = read_clean_shutdown(self._files, marker)
        report = LoadReport(broker_epoch is not None, -1 if broker_epoch is None else broker_epoch)
        if self._files.remove(marker):
            self._files.sync_directory(self.path)
        self._was_clean = report.was_clean
        recovery_points = self._checkpoints.read(file_names.RECOVERY_POINT_CHECKPOINT)
        log_starts = self._checkpoints.read(file_names.LOG_START_CHECKPOINT) or {}
        self.high_watermarks = self._checkpoints.read(file_names.HIGH_WATERMARK_CHECKPOINT) or {}
        folders, self._unwanted = partition_folders(self._files, self.path)
        for number, (name, partition) in enumerate(folders):
            if progress is not None:
                progress(number, len(folders), partition)
            config, found = config_of(partition.topic), RecoveryReport()
            is_copy = file_names.is_marked(name, file_names.FUTURE_FOLDER)
            try:
                log = open_log(
                    self._files,
                    self._file(name),
                    config,
                    now_ms=now_ms,
                    log_start_offset=log_starts.get(partition, 0),
                    recovery_point=(recovery_points or {}).get(partition, 0),
                    clean=report.was_clean,
                    # Compaction leaves gaps. If the checkpoint is missing, segments that were flushed long ago may have
                    # gaps too.
                    may_have_gaps=config.is_compacted or recovery_points is None,
                    new_jitter_ms=self._jitter(config),
                    producer_expiration_ms=self._producer_expiration_ms,
                    report=found,
                )
                if is_copy:
                    self.futures[partition] = log
                else:
                    self.add(log)
            except Exception as error:
                report.failed[name] = self._not_opened(partition, error)
                if is_copy:
                    continue  # the original log is not affected
                self.offline.add(partition)
                self._checkpoints.keep(partition)
            if found.segments_scanned or found.problems:
                report.recoveries[partition] = found
        self._checkpoints.loaded()
        if recovery_points is None or any(
            log.recovery_point < recovery_points.get(partition, 0) for partition, log in self._all_logs()
        ):
            # Records from here on are not flushed, so the next recovery must not use the old checkpoints.
            name = file_names.RECOVERY_POINT_CHECKPOINT
            self._checkpoints.write(name, self._offsets()[name])
        self._is_loading = False
        return report

    def _not_opened(self, partition: TopicPartition, error: Exception) -> str:
        """Log why a partition stays offline, whatever its files contain. Re-raise a shortage of descriptors or memory,
        which is temporary."""
        if is_shortage(error):
            raise error  # the next start, with a higher limit, opens it
        is_expected = isinstance(error, OSError | KafkaError | CorruptBatch | CorruptCheckpoint | CorruptIndex)
        _log.error("%s stays offline: %s", partition, error, exc_info=None if is_expected else error)
        return str(error) or type(error).__name__

    def _jitter(self, config: TopicConfig) -> Callable[[], int]:
        new_jitter_ms = self._new_jitter_ms
        if new_jitter_ms is None or config.segment_jitter_ms == 0:
            return no_jitter
        return lambda: new_jitter_ms(config)

    # Partitions

    def add(self, log: PartitionLog) -> None:
        """Use a log that was created or opened."""
        partition = log.partition
        assert partition not in self.logs, f"{partition} exists already"
        self._work.own(log)
        self.logs[partition] = log

    def create_unregistered(self, wanted: Iterable[NewLog], now_ms: int) -> list[PartitionLog]:
        """Create logs. This may run on any thread. `add` puts them to use."""
        return make_logs(self._files, self.path, wanted, self._jitter, self._producer_expiration_ms, now_ms)

    def add_being_created(self, logs: int) -> None:
        """Add to the number of logs that are being created. A negative number subtracts."""
        self.being_created += logs

    def create(
        self, partition: TopicPartition, config: TopicConfig, now_ms: int, topic_id: TopicId | None = None
    ) -> PartitionLog:
        assert partition not in self.logs, f"{partition} exists already"
        (log,) = self.create_unregistered([NewLog(partition, config, topic_id)], now_ms)
        self.add(log)
        return log

    def create_future(self, source: PartitionLog, now_ms: int) -> PartitionLog:
        """Create an empty log as a future copy of a log in another directory, with the same log start."""
        partition = source.partition
        assert partition not in {*self.logs, *self.futures}, f"{partition} exists already"
        log = open_log(
            self._files,
            self._file(file_names.marked_folder(partition, self._new_id(), file_names.FUTURE_FOLDER)),
            source.config,
            now_ms=now_ms,
            log_start_offset=source.log_start_offset,
            clean=True,
            new_jitter_ms=self._jitter(source.config),
            producer_expiration_ms=self._producer_expiration_ms,
        )
        if source.topic_id is not None:
            log.assign_topic_id(source.topic_id)
        self._files.sync_directory(self.path)
        self.futures[partition] = log
        return log

    def promote(self, partition: TopicPartition) -> PartitionLog:
        """Make the copy the partition's log."""
        log = self.futures.pop(partition)
        log.rename_folder(str(partition))
        self._files.sync_directory(self.path)
        self.add(log)
        return log

    def delete(self, partition: TopicPartition, now_ms: int) -> None:
        self.delete_all([partition], now_ms)

    def delete_all(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Rename folders. Their files are deleted after `file.delete.delay.ms`, when no reader uses them.

        If there are many, another thread renames them. A new log of the same name is created only after that.
        """
        wanted = [(self._remove_from_logs(one), self._new_name(one, file_names.DELETE_FOLDER)) for one in partitions]
        if len(wanted) <= RENAMED_AT_ONCE:
            for log, name in wanted:
                log.rename_folder(name)
                self._remove_later(log, now_ms)
        else:
            for first in range(0, len(wanted), RENAMED_AT_ONCE):
                group = wanted[first : first + RENAMED_AT_ONCE]
                self.run_on_worker(LogRenames(group, self._remove_later, self._work.on_failure), now_ms)
        # The checkpoints of a log are kept while the log may return after a crash. They are removed before a new log of
        # the same name is created.
        sync = Task(partial(self._files.sync_directory, self.path), self._work.on_failure)
        self.run_on_worker(sync, now_ms)
        self.checkpoint_soon(now_ms)
        self.run_on_worker(sync, now_ms)

    def delete_future(self, log: PartitionLog, now_ms: int) -> None:
        """Delete a copy that is no longer needed."""
        if self.futures.get(log.partition) is log:
            del self.futures[log.partition]
        self._rename_folder(log, file_names.DELETE_FOLDER)
        self._files.sync_directory(self.path)
        self.checkpoint()
        self._remove_later(log, now_ms)

    def mark_stray(self, partition: TopicPartition) -> str:
        """Rename the folder of a partition that is not in the metadata. Return the new name."""
        log = self._mark_folder(partition, file_names.STRAY_FOLDER)
        self._files.sync_directory(self.path)
        self.checkpoint()
        return log.directory

    def _mark_folder(self, partition: TopicPartition, mark: str) -> PartitionLog:
        log = self._remove_from_logs(partition)
        self._rename_folder(log, mark)
        return log

    def _remove_from_logs(self, partition: TopicPartition) -> PartitionLog:
        self.high_watermarks.pop(partition, None)
        return self.logs.pop(partition)

    def _rename_folder(self, log: PartitionLog, mark: str) -> None:
        log.rename_folder(self._new_name(log.partition, mark))

    def _new_name(self, partition: TopicPartition, mark: str) -> str:
        return file_names.marked_folder(partition, self._new_id(), mark)

    def _remove_later(self, log: PartitionLog, now_ms: int) -> None:
        due_ms = now_ms + log.config.file_delete_delay_ms
        self._deferred.add(due_ms, partial(self._close_deleted, log))

    def _close_deleted(self, log: PartitionLog) -> None:
        """Close the files of a deleted log, so that deleting its folder frees the disk space, and queue the folder."""
        log.abandon()
        self._unwanted.append(log.directory)

    def _remove_folders(self, paths: Iterable[str]) -> None:
        """Delete folders. This may run on any thread."""
        for path in paths:
            if self._files.exists(path):
                self._files.remove_directory(path)

    def space(self) -> Space:
        """Return the space of the directory's file system."""
        return self._files.space(self.path)

    # Upkeep

    def run_work_with(self, submit: Submit, on_failure: Callable[[OSError], object]) -> None:
        """Run work on another thread from now on: creation of logs, epoch files, and syncs of sealed segments and other
        data that no request waits for."""
        submit = retrying_submit(submit, self._deferred.add, on_failure)
        self._work.begin(submit, on_failure, self.logs.values())

    def run_on_worker(self, work: Chore, now_ms: int) -> None:
        """Run work on another thread if there is one, otherwise here and now."""
        self._work.add(work, now_ms)

    def run_due(self, now_ms: int, at_most: int = INT_MAX) -> int:
        """Run deferred work: up to `at_most` actions of the directory and as many of its logs. Return their number."""
        done = self._deferred.run_due(now_ms, at_most)
        if self._unwanted:
            unwanted, self._unwanted = self._unwanted, []
            removal = Task(partial(self._remove_folders, unwanted), self._work.on_failure)
            self._work.add_unordered(removal, now_ms)
        return done + self._work.run_due(self.logs, now_ms, at_most)

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset] | None = None) -> None:
        """Write how far each log is durable and where it starts, and the high watermarks if they are given."""
        for name, offsets in self._offsets().items():
            self._checkpoints.write(name, offsets)
        if high_watermarks is not None:
            self._checkpoints.write(file_names.HIGH_WATERMARK_CHECKPOINT, high_watermarks)

    def checkpoint_soon(self, now_ms: int) -> None:
        """Write the checkpoints without waiting."""
        self.run_on_worker(CheckpointWrites(self._checkpoints, self._offsets(), self._work.on_failure), now_ms)

    def checkpoint_high_watermarks_soon(self, high_watermarks: Mapping[TopicPartition, Offset], now_ms: int) -> None:
        """Write the high watermarks without waiting."""
        offsets = {file_names.HIGH_WATERMARK_CHECKPOINT: high_watermarks}
        self.run_on_worker(CheckpointWrites(self._checkpoints, offsets, self._work.on_failure), now_ms)

    def _offsets(self) -> dict[str, dict[TopicPartition, Offset]]:
        logs = self._all_logs()
        return {
            file_names.RECOVERY_POINT_CHECKPOINT: {key: log.recovery_point for key, log in logs},
            file_names.LOG_START_CHECKPOINT: {
                key: log.log_start_offset for key, log in logs if _has_start_of_its_own(log)
            },
        }

    def _all_logs(self) -> list[tuple[TopicPartition, PartitionLog]]:
        """Return logs and copies. A directory has either the log of a partition or a copy."""
        return [*self.futures.items(), *self.logs.items()]

    def close(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Stop cleanly: make everything durable, write the checkpoints and finally the marker. Write nothing if loading
        was interrupted."""
        if self._is_loading or self.failure is not None:
            self.abandon()
            return
        for _, log in self._all_logs():
            if log.epochs.is_behind(log.log_end_offset):
                log.epochs.write()
            log.flush(now_ms)
            log.close()
        self.checkpoint({partition: log.high_watermark for partition, log in self._all_logs()})
        if self._was_clean or not self.offline:
            # A log that could not be opened after a crash still has to be recovered.
            write_clean_shutdown(self._files, self._file(file_names.CLEAN_SHUTDOWN), broker_epoch)
        self._lock.close()

    def fail(self, error: OSError) -> list[TopicPartition]:
        """Stop using the directory, because its disk fails. Return its partitions."""
        if is_shortage(error):
            return []
        self.failure = error
        self._deferred.clear()
        lost = [*self.logs, *self.offline]
        for log in self.logs.values():
            log.abandon()
        self.logs.clear()
        self.futures.clear()  # their writers drop them
        self.offline.clear()
        return lost

    def abandon(self) -> None:
        """Close everything without writing, as after a crash."""
        for _, log in self._all_logs():
            log.abandon()
        self._lock.close()


def _has_start_of_its_own(log: PartitionLog) -> bool:
    """Return True if the log start offset cannot be seen from the segments."""
    return log.log_start_offset > log.segments.first.base_offset or log.is_tiered or log.is_removing
