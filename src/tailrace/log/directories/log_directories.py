"""LogDirectories: several log.dirs as one. A new partition is placed in the directory with the fewest partitions,
unless a directory was requested."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig

_PREFERENCES_MAX = 10_000  # clients may name partitions that do not exist


class DuplicateLog(Exception):
    """A partition is in two log directories."""


class LogDirectories:
    def __init__(
        self,
        directories: Sequence[LogDirectory],
        *,
        unusable: Sequence[str] = (),
        on_failure: Callable[[LogDirectory, OSError], object] = LogDirectory.fail,
    ) -> None:
        """`unusable` has the paths that could not be opened. `on_failure` takes a failed directory out of use."""
        assert directories, "at least one log directory is needed"
        self.directories = list(directories)
        self.unusable = tuple(unusable)
        self.cordoned: frozenset[str] = frozenset()  # paths that get no new partitions
        self.on_failure = on_failure
        # requested directories of partitions that do not exist yet
        self._preferred: dict[TopicPartition, LogDirectory] = {}

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    def is_offline(self, partition: TopicPartition) -> bool:
        """Return True if the partition is in a working directory but could not be opened."""
        return any(partition in directory.offline for directory in self.directories)

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        return next(one for one in self.directories if one.logs.get(log.partition) is log)

    def finish_interrupted_moves(self, place_of: Callable[[TopicPartition], bytes | None], now_ms: int) -> None:
        """Finish moves that a crash has interrupted at the end, so that a log is in two directories. The log in the
        directory of the metadata is kept, if it has all records of the other. `place_of` returns the id of a
        partition's directory."""
        for directory in self.directories:
            for partition, log in list(directory.logs.items()):
                others = [one for one in self.directories if one is not directory and partition in one.logs]
                if directory.id == place_of(partition) and all(
                    one.logs[partition].log_end_offset <= log.log_end_offset for one in others
                ):
                    for one in others:
                        one.delete(partition, now_ms)

    def check_unique(self) -> None:
        """Raise DuplicateLog if a partition is in more than one directory. An operator has to decide which one is
        right."""
        places: dict[TopicPartition, str] = {}
        for directory in self.directories:
            for partition, log in directory.logs.items():
                if partition in places:
                    raise DuplicateLog(f"{partition} is in {places[partition]} and in {log.directory}")
                places[partition] = log.directory

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        for directory in self.directories:
            if partition in directory.logs:
                return directory.logs[partition]
        return None

    def cordon(self, paths: frozenset[str]) -> None:
        """Exclude these directories from new partitions."""
        self.cordoned = paths

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Set the directory in which a partition will be created."""
        if len(self._preferred) < _PREFERENCES_MAX or partition in self._preferred:
            self._preferred[partition] = directory

    def _places(self, partition: TopicPartition) -> list[LogDirectory]:
        online = self.online
        open_for_more = [one for one in online if one.path not in self.cordoned] or online[:1]
        places = sorted(open_for_more, key=lambda one: len(one.logs) + one.being_created)
        preferred = self._preferred.pop(partition, None)
        return [preferred, *(one for one in places if one is not preferred)] if preferred in online else places

    def place_for(self, partition: TopicPartition) -> LogDirectory | None:
        """Return the directory for a new partition, or None if no directory is usable."""
        return next(iter(self._places(partition)), None)

    def create(
        self, partition: TopicPartition, config: TopicConfig, now_ms: int, topic_id: TopicId | None = None
    ) -> PartitionLog:
        assert self.get(partition) is None, f"{partition} exists already"
        assert not self.is_offline(partition), f"{partition} exists, but is offline"
        for directory in self._places(partition):
            try:
                return directory.create(partition, config, now_ms, topic_id)
            except OSError as error:
                self.on_failure(directory, error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no usable log directory for {partition}")
