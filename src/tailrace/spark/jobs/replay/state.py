"""ReplayState: the progress of each partition of a replay, in a directory that every worker sees.

Each partition has a small JSON file with the next offset of the source and the offset that it will get in the target.
It is written after records are acknowledged, so after a crash the target may have more records. Their number follows
from the end offset of the target; see `copy.py`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError


@dataclass(frozen=True, slots=True)
class ReplayPoint:
    source: str
    target: str
    start: Offset  # first offset of the source
    source_next: Offset
    target_next: Offset


class ReplayState:
    def __init__(self, path: str) -> None:
        self.path = path

    def _file(self, partition: TopicPartition) -> str:
        return os.path.join(self.path, f"{partition}.json")

    def read(self, partition: TopicPartition) -> ReplayPoint | None:
        """Read the progress of a partition; None if there is none."""
        path = self._file(partition)
        try:
            with open(path, encoding="utf-8") as file:
                return ReplayPoint(**json.load(file))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise JobError(f"{path} is not the state of a replay: {error}") from None
        except OSError as error:
            raise JobError(f"{path} cannot be read: {error.strerror}") from None

    def write(self, partition: TopicPartition, point: ReplayPoint) -> None:
        path = self._file(partition)
        try:
            os.makedirs(self.path, exist_ok=True)
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:
                json.dump(asdict(point), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{path}.tmp", path)
        except OSError as error:
            raise JobError(f"{path} cannot be written: {error.strerror}") from None
