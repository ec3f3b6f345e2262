"""The second stage of a load: each task writes the chunks of one partition to a log or to a cluster.

A log is built in a folder of its own with the append code of the broker, so its segments, indexes and checkpoints are
those that a broker would write. For a cluster, the chunks are replayed like a log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple
from uuid import uuid4

from tailrace.log.disk.files import DiskFiles, join
from tailrace.log.recovery.recovery import open_log
from tailrace.model.errors import KafkaError
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import LAST_OFFSET_DELTA_POSITION, LEADER_EPOCH_POSITION, RECORD_COUNT_POSITION
from tailrace.records.raw_batches import BatchCollector
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load.chunks import Chunk, batches_of
from tailrace.spark.source.planning.offset_ranges import OffsetRange

_INT64 = Struct(">q")
_INT32 = Struct(">i")


@dataclass(frozen=True, slots=True)
class BuildTask:
    partition: TopicPartition
    chunks: tuple[Chunk, ...]  # in the order of their records
    folder: str  # parent of the folder for the log
    config: TopicConfig
    leader_epoch: LeaderEpoch
    base_offset: Offset | None  # of the first record; None: records have their own offsets
    now_ms: int
    loaded_to: Offset = 0  # records before this offset are in the log already


class BuiltLog(NamedTuple):
    partition: TopicPartition
    folder: str
    records: int
    bytes: int
    segments: int
    first_offset: Offset
    end_offset: Offset
    leader_epoch: LeaderEpoch


def build_log(task: BuildTask) -> BuiltLog:
    """Build a log, flush and close it. It is then ready to be adopted."""
    files = DiskFiles()
    parent = join(task.folder, f"built.{uuid4().hex}")  # each attempt of a task builds its own
    folder = join(parent, str(task.partition))
    batches, records = _batches(task), 0
    try:
        os.makedirs(parent)
        batch = next(batches, None)
        assert batch is not None, f"{task.partition} has nothing to load"
        first: Offset = _INT64.unpack_from(batch, 0)[0]
        log = open_log(files, folder, task.config, now_ms=task.now_ms, log_start_offset=first, clean=True)
        while batch is not None:
            records += _INT32.unpack_from(batch, RECORD_COUNT_POSITION)[0]
            _INT32.pack_into(batch, LEADER_EPOCH_POSITION, task.leader_epoch)
            log.append_as_follower(batch, leader_epoch=task.leader_epoch, now_ms=task.now_ms)
            batch = next(batches, None)
        log.flush(task.now_ms)
        log.run_due(task.now_ms)
        log.close()
    except KafkaError as error:
        shutil.rmtree(parent, ignore_errors=True)
        raise JobError(f"{task.partition}: {error}") from None
    except OSError as error:
        shutil.rmtree(parent, ignore_errors=True)
        raise JobError(f"{task.partition} cannot be written: {error.filename or folder}: {error.strerror}") from None
    segments = list(log.segments)
    size = sum(segment.size for segment in segments)
    return BuiltLog(task.partition, folder, records, size, len(segments), first, log.log_end_offset, task.leader_epoch)


def _batches(task: BuildTask) -> Iterator[memoryview]:
    """Yield the batches that the log does not have yet, with their new offsets."""
    offset = task.base_offset
    for chunk in task.chunks:
        for batch in batches_of(chunk):
            if offset is not None:
                _INT64.pack_into(batch, 0, offset)
                offset += _INT32.unpack_from(batch, RECORD_COUNT_POSITION)[0]
            if not (task.loaded_to and _is_loaded(batch, task)):
                yield batch


def _is_loaded(batch: memoryview, task: BuildTask) -> bool:
    """Return True if the log has the batch. Raise JobError if it has only a part, because then the input has
    changed."""
    first: Offset = _INT64.unpack_from(batch, 0)[0]
    last: Offset = first + _INT32.unpack_from(batch, LAST_OFFSET_DELTA_POSITION)[0]
    if first < task.loaded_to <= last:
        raise JobError(
            f"{task.partition} ends at offset {task.loaded_to}, inside the batch {first} to {last}: the input "
            "differs from that of the stopped load"
        )
    return last < task.loaded_to


@dataclass(frozen=True, slots=True)
class ChunkSlice:
    """Chunks as a log with offsets from zero, to be replayed into a cluster."""

    partition: TopicPartition
    chunks: tuple[Chunk, ...]
    start: Offset = 0

    @property
    def range(self) -> OffsetRange:
        return OffsetRange(self.partition, self.start, sum(chunk.records for chunk in self.chunks))

    def feed(self, columns: BatchCollector, *, fail_on_data_loss: bool) -> Iterator[None]:
        offset = 0
        for chunk in self.chunks:
            for batch in batches_of(chunk):
                _INT64.pack_into(batch, 0, offset)
                offset += _INT32.unpack_from(batch, RECORD_COUNT_POSITION)[0]
                columns.put_batches(batch, 0, len(batch))
                if columns.is_full:
                    yield
