"""LoadState: the planned result of a load, so that a stopped load can be resumed without loading a record twice.

It is a JSON file, written when all logs are built and before the first one is adopted. A log adopts whole segments in
the order of offsets. So its end offset shows how many of them it has: none, all, or the first ones. In the last case
the remaining batches are built and adopted. This requires that no other producer writes to the log, and that the input
is the same; its number of records is compared.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load.build import BuildTask
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan
from tailrace.spark.jobs.load.target import LogEnd, build_task

_FILE = "load.json"


class PlannedLoad(NamedTuple):
    """The offsets and the number of records that one partition gets."""

    start: Offset
    end: Offset
    records: int


class LoadState:
    def __init__(self, path: str, target: str) -> None:
        self._path = os.path.join(path, _FILE)
        self._target = target

    def read(self) -> dict[TopicPartition, PlannedLoad]:
        """Read the state; empty if there is none. Raise JobError if it belongs to another target."""
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            target, notes = found["target"], found["partitions"]
            known = {TopicPartition(topic, number): PlannedLoad(*note) for topic, number, *note in notes}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError) as error:
            raise JobError(f"{self._path} is not the state of a load: {error}") from None
        except OSError as error:
            raise JobError(f"{self._path} cannot be read: {error.strerror}") from None
        if target != self._target:
            raise JobError(
                f"{self._path} is the state of a load into {target}, not {self._target}: give another state directory"
            )
        return known

    def write(self, notes: Mapping[TopicPartition, PlannedLoad]) -> None:
        rows = [[*partition, *note] for partition, note in sorted(notes.items())]
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(f"{self._path}.tmp", "w", encoding="utf-8") as file:
                json.dump({"target": self._target, "partitions": rows}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{self._path}.tmp", self._path)
        except OSError as error:
            raise JobError(f"{self._path} cannot be written: {error.strerror}") from None


def remaining_task(
    partition: TopicPartition,
    chunks: tuple[Chunk, ...],
    log_end_state: LogEnd,
    plan: ChunkPlan,
    note: PlannedLoad | None,
) -> BuildTask | None:
    """Return the task for the remaining batches of a partition; None if all are loaded."""
    if note is None:
        return build_task(partition, chunks, log_end_state, plan)
    records = sum(chunk.records for chunk in chunks)
    if note.records != records:
        raise JobError(
            f"{partition}: the input has {records} records, but the state is that of a load of {note.records}"
        )
    if log_end_state.end_offset >= note.end:
        return None
    if log_end_state.end_offset <= note.start:
        return build_task(partition, chunks, log_end_state, plan)
    return BuildTask(
        partition,
        chunks,
        plan.folder,
        log_end_state.config,
        log_end_state.leader_epoch,
        None if plan.keeps_offsets else note.start,
        plan.now_ms,
        log_end_state.end_offset,
    )
