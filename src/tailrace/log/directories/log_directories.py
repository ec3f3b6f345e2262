"""LogDirectories: several log.dirs as one; a new partition goes where the fewest are, unless a place was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig

_PREFERENCES_MAX = 10_000  # anybody may name partitions that are not there


class DuplicateLog(Exception):
    """The same partition lies in two log directories."""


class LogDirectories:
    def __init__(
        self,
        directories: Sequence[LogDirectory],
        *,
        unusable: Sequence[str] = (),
        on_failure: Callable[[LogDirectory, OSError], object] = LogDirectory.fail,
    ) -> None:
        """`unusable`: paths that could not be opened. `on_failure` takes a directory that fails out of use."""
        assert directories, "at least one log directory is needed"
        self.directories = list(directories)
        self.unusable = tuple(unusable)
        self.cordoned: frozenset[str] = frozenset()  # paths that get no new partitions
        self.on_failure = on_failure
        self._preferred: dict[TopicPartition, LogDirectory] = {}  # of partitions that are not there yet

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    def is_offline(self, partition: TopicPartition) -> bool:
        """Whether it is in a directory that works, but could not be opened."""
        return any(partition in directory.offline for directory in self.directories)

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        return next(one for one in self.directories if one.logs.get(log.partition) is log)

    def finish_interrupted_moves(self, place_of: Callable[[TopicPartition], bytes | None], now_ms: int) -> None:
        """A move that a crash cut off at its very end leaves a log twice: the one where the metadata says counts, if it
        has all that the other has. `place_of`: the id of a partition's directory."""
        for directory in self.directories:
            for partition, log in list(directory.logs.items()):
                others = [one for one in self.directories if one is not directory and partition in one.logs]
                if directory.id == place_of(partition) and all(
                    one.logs[partition].log_end_offset <= log.log_end_offset for one in others
                ):
                    for one in others:
                        one.delete(partition, now_ms)

    def check_unique(self) -> None:
        """Raise DuplicateLog if a partition is in more than one directory: only a person can tell which is right."""
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
        """Give no new partitions to these directories."""
        self.cordoned = paths

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Where a partition is to be made, should it ever be."""
        if len(self._preferred) < _PREFERENCES_MAX or partition in self._preferred:
            self._preferred[partition] = directory

    def _places(self, partition: TopicPartition) -> list[LogDirectory]:
        online = self.online
        open_for_more = [one for one in online if one.path not in self.cordoned] or online[:1]
        places = sorted(open_for_more, key=lambda one: len(one.logs) + one.being_made)
        preferred = self._preferred.pop(partition, None)
        return [preferred, *(one for one in places if one is not preferred)] if preferred in online else places

    def place_for(self, partition: TopicPartition) -> LogDirectory | None:
        """Where a new partition is to be made; None if no directory is left."""
        return next(iter(self._places(partition)), None)

    def create(
        self, partition: TopicPartition, config: TopicConfig, now_ms: int, topic_id: TopicId | None = None
    ) -> PartitionLog:
        assert self.get(partition) is None, f"{partition} is there already"
        assert not self.is_offline(partition), f"{partition} is there, but cannot be used"
        for directory in self._places(partition):
            try:
                return directory.create(partition, config, now_ms, topic_id)
            except OSError as error:
                self.on_failure(directory, error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no log directory takes {partition}")
