"""LoadState: what a load is about to take in where, so that one that was stopped goes on and loads nothing twice.

A JSON file in a directory, written when all logs are built and before the first is taken in. A log takes whole segments
in, in the order of offsets, so where it ends now says how much of them it has: nothing, all, or the first ones, and
then the rest of the same batches is built and follows. That holds while nobody else writes there and the input is the
same; of the input the number of records is compared.
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
from tailrace.spark.jobs.load.target import Standing, build_task

_FILE = "load.json"


class LoadNote(NamedTuple):
    """What one partition gets."""

    start: Offset
    end: Offset
    records: int


class LoadState:
    def __init__(self, path: str, target: str) -> None:
        self._path = os.path.join(path, _FILE)
        self._target = target

    def read(self) -> dict[TopicPartition, LoadNote]:
        """What was noted; nothing if no load came that far. JobError if it is about another target."""
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            target, notes = found["target"], found["partitions"]
            known = {TopicPartition(topic, number): LoadNote(*note) for topic, number, *note in notes}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError) as error:
            raise JobError(f"{self._path} is no state of a load: {error}") from None
        except OSError as error:
            raise JobError(f"{self._path} cannot be read: {error.strerror}") from None
        if target != self._target:
            raise JobError(f"{self._path} is the state of a load into {target}")
        return known

    def write(self, notes: Mapping[TopicPartition, LoadNote]) -> None:
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


def task_for_the_rest(
    partition: TopicPartition, chunks: tuple[Chunk, ...], standing: Standing, plan: ChunkPlan, note: LoadNote | None
) -> BuildTask | None:
    """What is left to build of a partition; None where all of it is loaded."""
    if note is None:
        return build_task(partition, chunks, standing, plan)
    records = sum(chunk.records for chunk in chunks)
    if note.records != records:
        raise JobError(f"{partition}: {records} records are given, and the state is that of a load of {note.records}")
    if standing.end_offset >= note.end:
        return None
    if standing.end_offset <= note.start:
        return build_task(partition, chunks, standing, plan)
    return BuildTask(
        partition,
        chunks,
        plan.folder,
        standing.config,
        standing.leader_epoch,
        None if plan.keeps_offsets else note.start,
        plan.now_ms,
        standing.end_offset,
    )
