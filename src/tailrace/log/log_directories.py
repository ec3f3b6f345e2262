"""LogDirectories: several log.dirs as one; a new partition goes where the fewest are."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.log.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig


class DuplicateLog(Exception):
    """The same partition lies in two log directories."""


class LogDirectories:
    def __init__(self, directories: Sequence[LogDirectory]) -> None:
        assert directories, "at least one log directory is needed"
        self.directories = list(directories)

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

    def create(
        self, partition: TopicPartition, config: TopicConfig, now_ms: int, topic_id: TopicId | None = None
    ) -> PartitionLog:
        assert self.get(partition) is None, f"{partition} is there already"
        emptiest = min(self.directories, key=lambda directory: len(directory.logs))
        return emptiest.create(partition, config, now_ms, topic_id)
