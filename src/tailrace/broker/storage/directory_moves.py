"""DirectoryMoves: moves of partitions between log directories (AlterReplicaLogDirs), one at a time.

    1  a chore copies the log, one megabyte per step
    2  a chore syncs the copy
    3  the last records are copied on the broker's thread, and the controller is asked to assign the new directory
    4  when the metadata has the new directory, the copy replaces the log
    5  the old folder is deleted after file.delete.delay.ms

`replica.alter.log.dirs.io.max.bytes.per.second` limits the copying. A move that a stop or a crash interrupts is resumed
at the next start. A move that fails because of the log's content is retried after a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tailrace.broker.storage.cleaning import LogCleaning
from tailrace.log.compaction.cleaner_checkpoint import CleanerCheckpoint
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.storage.metadata_log import MetadataLogFailed
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.model.log_fields import fields
from tailrace.model.shortage import SHORTAGE_RETRY_MS
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.directory_move import CopyStep, DirectoryMove, SourceFailed, SyncStep
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.waiting.chore import Chore, FunctionChore
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)

_WAIT_FOR_QUOTA_MS = 100
_WAIT_FOR_CLEANER_MS = 1_000
_WAIT_FOR_CONTROLLER_MS = 50
_REPORT_AGAIN_MS = 30_000
_WAIT_AFTER_FAILURE_MS = 10 * 60_000


class DirectoryMoves:
    def __init__(
        self,
        files: Files,
        logs: LogDirectories,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        controller: Controller,
        submit: Callable[[Chore], None],
        quota: ReplicationQuota,
        cleaning: LogCleaning | None = None,
    ) -> None:
        self._files = files
        self._logs = logs
        self._partitions = partitions
        self._purgatory = purgatory
        self._controller = controller
        self._submit = submit
        self.quota = quota
        self._cleaning = cleaning
        self._moves: list[DirectoryMove] = []
        self._running: DirectoryMove | None = None  # the move whose step a chore is running
        self.completed = 0
        self.bytes_copied = 0

    def __len__(self) -> int:
        return len(self._moves)

    # Orders

    def request_move(self, key: TopicPartition, path: str, now_ms: int) -> ErrorCode:
        """Move a partition to a directory. Return the error to respond with."""
        if file_names.is_too_long_to_mark(key):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        target = next((one for one in self._logs.directories if one.path == path), None)
        if target is None:
            return ErrorCode.KAFKA_STORAGE_ERROR if path in self._logs.unusable else ErrorCode.LOG_DIR_NOT_FOUND
        if target.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if path in self._logs.cordoned:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        partition = self._partitions.get(key)
        if partition is None:
            error = self._partitions.error_of(key)
            if error is ErrorCode.KAFKA_STORAGE_ERROR:
                return error
            self._logs.prefer(key, target)
            return ErrorCode.REPLICA_NOT_AVAILABLE if error is ErrorCode.NOT_LEADER_OR_FOLLOWER else error
        if partition.move is not None and partition.move.target is not target:
            self.cancel(key, now_ms)
        if key in target.logs or partition.move is not None:
            return ErrorCode.NONE
        if self._logs.unusable or len(self._logs.online) < len(self._logs.directories):
            return ErrorCode.KAFKA_STORAGE_ERROR  # an offline directory may contain another copy of the partition
        try:
            target.create_future(partition.log, now_ms)
        except OSError as error:
            self._logs.on_failure(target, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._begin_move(partition, target, now_ms)
        return ErrorCode.NONE

    def _begin_move(self, partition: Partition, target: LogDirectory, now_ms: int) -> None:
        source = self._logs.directory_of(partition.log)
        move = DirectoryMove(self._files, partition, source, target, now_ms)
        partition.start_move(move)
        self._moves.append(move)
        if self._cleaning is not None:
            self._cleaning.paused.add(partition.key)
        _log.info(
            "partition is being moved",
            extra=fields(partition=partition.key, source=source.path, target=target.path, bytes=partition.log.size),
        )

    def cancel(self, key: TopicPartition, now_ms: int) -> None:
        """Cancel the move of a partition that is deleted or gets another target. Its copy is deleted."""
        partition = self._partitions.get(key)
        if partition is None or partition.move is None:
            return
        move = next(one for one in self._moves if one is partition.move)
        move.cancel()
        partition.end_move()
        move.target.futures.pop(key)
        if move is not self._running:
            self._drop_move(move, now_ms)

    def resume(self, now_ms: int) -> None:
        """Resume the moves that the last stop interrupted."""
        for directory in self._logs.online:
            for key, copy in list(directory.futures.items()):
                partition = self._partitions.get(key)
                if partition is None and key in self._partitions.offline:
                    continue  # the directory of its log is offline, but may be back after another start
                if partition is None or key in directory.logs or copy.topic_id not in (None, partition.log.topic_id):
                    _log.warning("%s is deleted: it is a copy of a partition that this broker lacks", copy.directory)
                    directory.delete_future(copy, now_ms)
                    continue
                self._begin_move(partition, directory, now_ms)

    # Steps

    def next_deadline_ms(self) -> int | None:
        if (
            not self._moves or self._running is not None
        ):  # the usual case first, since the loop calls this before each wait
            return None
        return min(move.due_ms for move in self._moves)

    def tick(self, now_ms: int) -> None:
        if self._running is not None or not self._moves:
            return
        for gone in [move for move in self._moves if not move.is_valid]:
            self._drop_move(gone, now_ms)
        move = next((move for move in self._moves if move.due_ms <= now_ms), None)
        if move is None:
            return
        if self.quota.is_exceeded(now_ms):
            move.resume_at(now_ms + _WAIT_FOR_QUOTA_MS)
        else:
            self._continue(move, now_ms)

    def _continue(self, move: DirectoryMove, now_ms: int) -> None:
        try:
            step = move.next_step(now_ms)
            if step is not None:
                self._start(move, step)
            elif self._cleaning is not None and self._cleaning.current == move.partition.key:
                move.resume_at(now_ms + _WAIT_FOR_CLEANER_MS)
            elif move.catch_up(now_ms) and self._is_confirmed(move, now_ms):
                self._finish(move, now_ms)
        except MetadataLogFailed as error:
            _log.error("the move of %s is delayed: %s", move.partition.key, error)
            move.resume_at(now_ms + SHORTAGE_RETRY_MS)  # unless the failure stops the broker
        except SourceFailed as error:
            move.resume_at(now_ms + SHORTAGE_RETRY_MS)
            self._logs.on_failure(move.source, error.error)
        except OSError as error:
            move.resume_at(now_ms + SHORTAGE_RETRY_MS)
            self._logs.on_failure(move.target, error)

    def _is_confirmed(self, move: DirectoryMove, now_ms: int) -> bool:
        """Return True if the metadata has the target as the replica's directory. Ask the controller for it if needed.

        Until then the old log is kept: after a crash or a disk failure, the metadata must name the directory that has
        the replica.
        """
        if not self._controller.image.record_versions.has_directories or self._is_at(move, move.target):
            return True
        if now_ms >= move.reported_ms + _REPORT_AGAIN_MS:
            move.note_reported(now_ms)
            self._assign(move, move.target, now_ms)
            if self._is_at(move, move.target):
                return True
        move.resume_at(now_ms + _WAIT_FOR_CONTROLLER_MS)
        return False

    def _is_at(self, move: DirectoryMove, directory: LogDirectory) -> bool:
        state = self._controller.image.partition(move.partition.key)
        return state is not None and state.directory_of(self._controller.node_id) == directory.id

    def _assign(self, move: DirectoryMove, directory: LogDirectory, now_ms: int) -> None:
        place = (directory.id, move.partition.topic_id, move.partition.key.partition)
        self._controller.assign_directories([place], now_ms)

    def _start(self, move: DirectoryMove, step: CopyStep | SyncStep) -> None:
        before = move.bytes_copied
        self._running = move

        def apply(_: Any, now_ms: int) -> None:
            self.quota.record(move.bytes_copied - before, now_ms)
            self._ended(move, now_ms)
            if move.is_valid:
                step.undo_if_replaced(now_ms)
                move.note_ended()
                self._purgatory.check(move.partition.key, now_ms)  # a DeleteRecords request may wait for the copy

        def failed(error: BaseException, now_ms: int) -> None:
            self._ended(move, now_ms)
            move.resume_at(now_ms + SHORTAGE_RETRY_MS)
            if isinstance(error, SourceFailed):
                self._logs.on_failure(move.source, error.error)
            elif isinstance(error, OSError):
                self._logs.on_failure(move.target, error)
            else:
                _log.error("%s could not be copied to %s: %s", move.partition.key, move.target.path, error)
                move.resume_at(now_ms + _WAIT_AFTER_FAILURE_MS)

        self._submit(FunctionChore(step.run, apply, failed))

    def _ended(self, move: DirectoryMove, now_ms: int) -> None:
        self._running = None
        move.resume_at(now_ms)
        if not move.is_valid:
            self._drop_move(move, now_ms)

    # Ends

    def _drop_move(self, move: DirectoryMove, now_ms: int) -> None:
        """End a move without success. No chore writes to the copy at this point."""
        self._unregister(move)
        self._take_back(move, now_ms)
        try:
            if move.target.failure is not None or not move.is_cancelled:
                move.copy.abandon()  # the files stay, and the next start resumes the move
                move.target.futures.pop(move.partition.key, None)
            else:
                move.target.delete_future(move.copy, now_ms)
        except OSError as error:
            self._logs.on_failure(move.target, error)

    def _take_back(self, move: DirectoryMove, now_ms: int) -> None:
        """Assign the source directory again if the controller may already have assigned the target."""
        key, source = move.partition.key, move.source
        was_reported = move.reported_ms >= 0 or self._is_at(move, move.target)
        if was_reported and source.logs.get(key) is move.partition.log and self._partitions.get(key) is move.partition:
            self._assign(move, source, now_ms)

    def _unregister(self, move: DirectoryMove) -> None:
        self._moves.remove(move)
        if move.partition.move is move:
            move.partition.end_move()
        if self._cleaning is not None:
            self._cleaning.paused.discard(move.partition.key)

    def _finish(self, move: DirectoryMove, now_ms: int) -> None:
        key = move.partition.key
        try:
            move.promote(now_ms)
        except OSError as error:
            if key in move.target.logs:  # the copy is in place; only the old folder could not be renamed
                self._logs.on_failure(move.source, error)
            else:
                self._assign(move, move.source, now_ms)
                self._logs.on_failure(move.target, error)
                return
        self._unregister(move)
        self._partitions.note_change()
        self._move_cleaner_checkpoint(move)
        self.completed += 1
        self.bytes_copied += move.bytes_copied
        _log.info("partition moved", extra=fields(partition=key, target=move.target.path, bytes=move.bytes_copied))
        self._purgatory.check(key, now_ms)

    def _move_cleaner_checkpoint(self, move: DirectoryMove) -> None:
        key = move.partition.key
        for directory in (move.source, move.target):
            checkpoint = CleanerCheckpoint(self._files, directory.path)
            try:
                if directory is move.source:
                    clean_to = checkpoint.read().get(key)
                    checkpoint.remove(key)
                elif clean_to is not None:
                    checkpoint.update(key, clean_to, directory.logs.keys())
            except OSError as error:
                self._logs.on_failure(directory, error)
                return
