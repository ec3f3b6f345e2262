"""Chunks to a log, or to a cluster: what a second task of a load does, for one partition.

A log is built in a folder of its own by the code that a broker appends with, so its segments, indexes and checkpoints
are what a broker would have written. Over the wire the chunks are replayed like any other log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple
from uuid import uuid4

from tailrace.log.files import DiskFiles, join
from tailrace.log.recovery import open_log
from tailrace.model.errors import KafkaError
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import LEADER_EPOCH_POSITION, RECORD_COUNT_POSITION
from tailrace.records.raw_batches import BatchTaker
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load_chunks import Chunk, batches_of
from tailrace.spark.source.offset_ranges import OffsetRange

_INT64 = Struct(">q")
_INT32 = Struct(">i")


@dataclass(frozen=True, slots=True)
class BuildTask:
    partition: TopicPartition
    chunks: tuple[Chunk, ...]  # in the order of their records
    folder: str  # in which a folder for the log is made
    config: TopicConfig
    leader_epoch: LeaderEpoch
    base_offset: Offset | None  # of the first record; None where records have their offsets
    now_ms: int


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
    """A closed and durable log, ready to be adopted."""
    start = task.chunks[0].first_offset if task.base_offset is None else task.base_offset
    files = DiskFiles()
    parent = join(task.folder, f"built.{uuid4().hex}")  # a task that is tried again builds another
    folder = join(parent, str(task.partition))
    try:
        os.makedirs(parent)
        log = open_log(files, folder, task.config, now_ms=task.now_ms, log_start_offset=start, clean=True)
        offset = start
        for chunk in task.chunks:
            for batch in batches_of(chunk):
                if task.base_offset is not None:
                    _INT64.pack_into(batch, 0, offset)
                    offset += _INT32.unpack_from(batch, RECORD_COUNT_POSITION)[0]
                _INT32.pack_into(batch, LEADER_EPOCH_POSITION, task.leader_epoch)
                log.append_as_follower(batch, leader_epoch=task.leader_epoch, now_ms=task.now_ms)
        log.flush(task.now_ms)
        log.run_due(task.now_ms)
        log.close()
    except KafkaError as error:
        shutil.rmtree(parent, ignore_errors=True)
        raise JobError(f"{task.partition}: {error}") from None
    except OSError as error:
        shutil.rmtree(parent, ignore_errors=True)
        raise JobError(f"{task.partition} cannot be written: {error.filename or folder}: {error.strerror}") from None
    records = sum(chunk.records for chunk in task.chunks)
    segments = list(log.segments)
    size = sum(segment.size for segment in segments)
    return BuiltLog(task.partition, folder, records, size, len(segments), start, log.log_end_offset, task.leader_epoch)


@dataclass(frozen=True, slots=True)
class ChunkSlice:
    """Chunks as a log whose offsets count from zero, to be replayed into a cluster."""

    partition: TopicPartition
    chunks: tuple[Chunk, ...]

    @property
    def range(self) -> OffsetRange:
        return OffsetRange(self.partition, 0, sum(chunk.records for chunk in self.chunks))

    def feed(self, columns: BatchTaker, *, fail_on_data_loss: bool) -> Iterator[None]:
        offset = 0
        for chunk in self.chunks:
            for batch in batches_of(chunk):
                _INT64.pack_into(batch, 0, offset)
                offset += _INT32.unpack_from(batch, RECORD_COUNT_POSITION)[0]
                columns.put_batches(batch, 0, len(batch))
                if columns.is_full:
                    yield
