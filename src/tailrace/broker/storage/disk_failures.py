"""DiskFailures: log directories that fail while the broker runs.

As in Kafka, one failed read, write or sync takes the whole directory offline:

1. Requests for its partitions get KAFKA_STORAGE_ERROR.
2. The controller elects leaders on other brokers.
3. Nothing is written to the directory, and the other directories are not affected.
4. Acknowledged records stay in its files. They are served again after the disk is repaired and the broker restarted.

If the directory of the metadata log fails, the broker stops, as in Kafka. The request whose change could not be written
gets KAFKA_STORAGE_ERROR, or its connection is closed, and `tick` raises LogDirectoriesFailed.

A lack of file descriptors or memory is not a disk failure. Only the current operation fails: its client gets
KAFKA_STORAGE_ERROR and retries. At most one line per ten seconds is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.storage.metadata_log import MetadataLogFailed
from tailrace.model.errors import FatalError
from tailrace.model.ids import TopicPartition
from tailrace.model.shortage import is_shortage
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)


class LogDirectoriesFailed(FatalError):
    """The directory of the metadata log has failed, so the broker cannot run."""


class DiskFailures:
    def __init__(
        self,
        logs: LogDirectories,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        controller: Controller,
        *,
        ids: Mapping[str, bytes],
        metadata_path: str,
    ) -> None:
        """`ids` are the ids of the directories by path."""
        self._logs = logs
        self._partitions = partitions
        self._purgatory = purgatory
        self._controller = controller
        self._ids = ids
        self._metadata_path = metadata_path
        self._lost: list[tuple[TopicPartition, bytes]] = []  # partitions with the ids of their failed directories
        self._is_due = False
        self._shortage: OSError | None = None  # the latest shortage since the last tick
        self._limited_log = LimitedLog(_log)

    @property
    def is_due(self) -> bool:
        """True if a failure has not been reported to the controller and to waiting requests yet."""
        return self._is_due or self._controller.log.failure is not None

    def partition_failed(self, partition: Partition, error: OSError) -> None:
        """Take the directory of a partition offline, because an operation on its log failed."""
        log = partition.log
        for directory in self._logs.online:
            if directory.logs.get(log.partition) is log:
                self.directory_failed(directory, error)

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory offline at once. The controller and waiting requests are notified at the next tick."""
        if is_shortage(error):
            self._shortage = error
            return
        if directory.failure is not None:
            return
        _log.error("log directory %s is offline: %s", directory.path, error)
        for key in directory.fail(error):
            self._partitions.mark_offline(key)
            self._lost.append((key, self._ids[directory.path]))
        self._is_due = True

    def tick(self, now_ms: int) -> None:
        self._log_shortage(now_ms)
        if not self.is_due:
            return
        self._is_due = False
        online = [directory.path for directory in self._logs.online]
        self._check_metadata()
        lost, self._lost = self._lost, []
        topics = self._controller.image.topics
        # The controller may not know yet which of several directories a partition is in.
        places = [(place, topics[key.topic].id, key.partition) for key, place in lost if key.topic in topics]
        try:
            self._controller.assign_directories(places, now_ms)
            self._controller.directories_online([self._ids[path] for path in online], now_ms)
        except MetadataLogFailed:
            self._check_metadata()
            self._lost, self._is_due = lost + self._lost, True  # a shortage: try again at the next tick
        for key, _ in lost:
            self._purgatory.check(key, now_ms)

    def _log_shortage(self, now_ms: int) -> None:
        if self._shortage is not None:
            message = (
                "a file operation failed for lack of descriptors or memory: raise ulimit -n or lower max.connections"
            )
            self._limited_log.write(logging.ERROR, "shortage", now_ms, message, error=self._shortage)
            self._shortage = None

    def _check_metadata(self) -> None:
        failure = self._controller.log.failure
        for directory in self._logs.directories:
            if directory.path == self._metadata_path:
                failure = failure or directory.failure
        if failure is not None:
            raise LogDirectoriesFailed(f"{self._metadata_path}, which has the metadata log, has failed: {failure}")
