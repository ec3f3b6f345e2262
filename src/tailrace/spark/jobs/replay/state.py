"""ReplayState: how far each partition of a replay is, in a directory that every worker sees.

One small JSON file a partition: which offset of the source comes next, and which offset of the target it will get. It
is written after records were acknowledged, so after a crash the target may have more than it says. Where that is so,
the target's own end tells how many records more; see `replay.py`.
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
    start: Offset  # of the source, where the replay began
    source_next: Offset
    target_next: Offset


class ReplayState:
    def __init__(self, path: str) -> None:
        self.path = path

    def _file(self, partition: TopicPartition) -> str:
        return os.path.join(self.path, f"{partition}.json")

    def read(self, partition: TopicPartition) -> ReplayPoint | None:
        """Where the partition was left; None if it was never begun."""
        path = self._file(partition)
        try:
            with open(path, encoding="utf-8") as file:
                return ReplayPoint(**json.load(file))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise JobError(f"{path} is no state of a replay: {error}") from None
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
