"""The first tasks of a load: write rows to chunks. A chunk is a file of record batches for one partition.

Rows arrive as Arrow batches with the columns of `input.py`. The kernel of `records/columnar/column_encoder.py` encodes
them into batches, with compression and checksum. If offsets are kept, the batches have them. Otherwise each batch
starts at zero and gets its offset when the log is built; the checksum does not cover it.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Offset, TopicPartition
from tailrace.records.batch import ATTRIBUTES_POSITION, CRC_POSITION, HEADER, HEADER_SIZE, LOG_OVERHEAD, Codec
from tailrace.records.builder import batch_attributes
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.columnar.column_encoder import NO_ROW, OpenBatch, RowEncoder, choose_batches
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.sink.task_writer import bytes_input, headers_input, int_input

_FLUSH_BYTES = 4 * 1024 * 1024
_PARTITION_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPlan:
    """The common settings of all first tasks of a load."""

    folder: str
    topic: str | None = None  # of all rows; None: the column `topic`
    partitions: int | None = None  # number of partitions of that topic; None: rows have a column `partition`
    keeps_offsets: bool = False
    codec: Codec = Codec.NONE
    batch_bytes: int = 65_536
    now_ms: int = 0


class Chunk(NamedTuple):
    partition: TopicPartition
    path: str
    records: int
    bytes: int
    first_offset: Offset
    last_offset: Offset
    max_timestamp: int


class _Target:
    """The chunk of one partition in a task: its sealed batches that are not in the file yet, and its counts."""

    def __init__(self, partition: TopicPartition, path: str) -> None:
        self.partition = partition
        self.path = path
        self.held = bytearray()
        self.records = 0
        self.bytes = 0
        self.first_offset: Offset = -1
        self.last_offset: Offset = -1
        self.max_timestamp = -1

    def flush(self) -> None:
        with open(self.path, "ab") as file:
            file.write(self.held)
        self.held.clear()

    def chunk(self) -> Chunk:
        return Chunk(
            self.partition,
            self.path,
            self.records,
            self.bytes,
            self.first_offset,
            self.last_offset,
            self.max_timestamp,
        )


class ChunkWriter:
    def __init__(self, plan: ChunkPlan, number: int) -> None:
        """Create a writer. The task number selects the first partition for rows without a key."""
        self._plan = plan
        self._turn = number
        self._name = f"{number:06d}-{uuid4().hex[:12]}"  # each attempt of a task writes its own files
        self._encoder = RowEncoder(plan.batch_bytes)
        self._targets: list[_Target] = []
        self._batches: list[OpenBatch] = []
        self._numbers: dict[TopicPartition, int] = {}
        os.makedirs(plan.folder, exist_ok=True)

    def write(self, batches: Iterable[Any]) -> list[Chunk]:
        """Write all rows in order. Return the chunks of the partitions that have rows."""
        for rows in batches:
            if rows.num_rows:
                self._put(rows)
        for number in range(len(self._targets)):
            self._seal(number)
            self._targets[number].flush()
        return [target.chunk() for target in self._targets]

    def _put(self, rows: Any) -> None:
        names = set(rows.schema.names)

        def column(name: str) -> Any:
            return rows.column(name) if name in names else None

        key, headers, timestamp, offset = (column(name) for name in ("key", "headers", "timestamp", "offset"))
        targets = self._targets_of(rows, key)
        offsets = None
        if self._plan.keeps_offsets:
            if offset.null_count:
                raise JobError(f"{self._place(rows, targets, _first_null(offset))}: a row has no offset")
            offsets = int_input(offset, 8)
        position = 0
        while position < rows.num_rows:
            try:
                reached = self._encoder.encode_rows(
                    self._batches,
                    targets,
                    None if key is None else bytes_input(key),
                    bytes_input(rows.column("value")),
                    None if headers is None else headers_input(headers),
                    None if timestamp is None else int_input(timestamp, 8),
                    self._plan.now_ms,
                    position,
                    rows.num_rows,
                    offsets,
                )
            except ValueError as error:
                raise self._row_error(error, rows, targets) from None
            if reached < rows.num_rows:
                self._seal(memoryview(targets).cast("B").cast("i")[reached])
            position = reached

    def _targets_of(self, rows: Any, key: Any) -> Any:
        """Return the index of the target of each row, as 32-bit integers."""
        if self._plan.partitions is not None:
            return self._by_key(rows, key)
        partition = rows.column("partition")
        if partition.null_count:
            raise JobError(f"row {_first_null(partition)} of an input batch has no partition")
        codes = partition.cast(pa.int64())
        topics = [self._plan.topic]
        if self._plan.topic is None:
            topic = rows.column("topic")
            if topic.null_count:
                raise JobError(f"row {_first_null(topic)} of an input batch has no topic")
            encoded = topic.dictionary_encode()
            topics = encoded.dictionary.to_pylist()
            codes = pc.add(codes, pc.shift_left(encoded.indices.cast(pa.int64()), _PARTITION_BITS))
        found = pc.unique(codes)
        numbers = []
        for code in found.to_pylist():
            index, number = divmod(code, 2**_PARTITION_BITS)
            if index < 0 or number >= 2**31 or topics[index] is None:
                raise JobError(f"a row has the invalid partition {partition[pc.index(codes, code).as_py()].as_py()}")
            numbers.append(self._number(TopicPartition(str(topics[index]), number)))
        places = pc.index_in(codes, value_set=found)
        return pc.take(pa.array(numbers, pa.int32()), places).buffers()[1]

    def _by_key(self, rows: Any, key: Any) -> Any:
        """Return targets by key, as Kafka's clients choose them. Rows without a key go to one partition per batch."""
        assert self._plan.topic is not None
        assert self._plan.partitions is not None
        count = self._plan.partitions
        if not self._targets:
            for number in range(count):
                self._number(TopicPartition(self._plan.topic, number))
        self._turn += 1
        targets = bytearray(4 * rows.num_rows)
        one = [array("i", [number]) for number in (count, 0, self._turn % count)]
        keys = None if key is None else bytes_input(key)
        missing = choose_batches(targets, rows.num_rows, keys, None, None, *one)
        assert missing == NO_ROW
        return targets

    def _number(self, partition: TopicPartition) -> int:
        number = self._numbers.get(partition)
        if number is None:
            number = self._numbers[partition] = len(self._targets)
            self._targets.append(_Target(partition, os.path.join(self._plan.folder, f"{partition}.{self._name}")))
            self._batches.append(OpenBatch())
        return number

    def _seal(self, number: int) -> None:
        batch, target = self._batches[number], self._targets[number]
        if not batch.count:
            return
        if self._plan.keeps_offsets:
            if target.records and batch.base_offset <= target.last_offset:
                raise JobError(f"{target.partition} has offset {batch.base_offset} twice")
            if target.records == 0:
                target.first_offset = batch.base_offset
            target.last_offset = batch.last_offset
        codec = self._plan.codec
        data = memoryview(batch.buffer)[: batch.size]
        if codec is not Codec.NONE:
            data = memoryview(bytearray(HEADER_SIZE) + compress(codec, data[HEADER_SIZE:]))
        HEADER.pack_into(
            data,
            0,
            batch.base_offset,
            len(data) - LOG_OVERHEAD,
            NO_LEADER_EPOCH,
            2,
            0,
            batch_attributes(codec),
            batch.last_offset - batch.base_offset,
            batch.base_timestamp,
            batch.max_timestamp,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            batch.count,
        )
        data[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(data[ATTRIBUTES_POSITION:]).to_bytes(4, "big")
        target.held += data
        target.records += batch.count
        target.bytes += len(data)
        target.max_timestamp = max(target.max_timestamp, batch.max_timestamp)
        batch.restart()
        if len(target.held) >= _FLUSH_BYTES:
            target.flush()

    def _place(self, rows: Any, targets: Any, row: int) -> str:
        partition = self._targets[memoryview(targets).cast("B").cast("i")[row]].partition
        if "offset" in rows.schema.names and rows.column("offset")[row].is_valid:
            return f"{partition} at offset {rows.column('offset')[row].as_py()}"
        return str(partition)

    def _row_error(self, error: ValueError, rows: Any, targets: Any) -> JobError:
        """Return the kernel's error with the partition and offset of the row instead of its number."""
        noun, number, *rest = str(error).split(" ")
        if noun != "row" or not number.isdecimal():
            return JobError(str(error))
        return JobError(f"{self._place(rows, targets, int(number))}: the record {' '.join(rest)}")


def _first_null(column: Any) -> int:
    return int(pc.index(column.is_null(), True).as_py())


def batches_of(chunk: Chunk, *, piece_bytes: int = 8 * 1024 * 1024) -> Iterator[memoryview]:
    """Yield the batches of a chunk. Each is writable until the next one is requested."""
    with open(chunk.path, "rb") as file:
        held = bytearray()
        while True:
            piece = file.read(piece_bytes)
            held += piece
            view, position = memoryview(held), 0
            while len(held) - position >= HEADER_SIZE:
                size = int.from_bytes(view[position + 8 : position + 12], "big") + LOG_OVERHEAD
                if size > len(held) - position:
                    break
                yield view[position : position + size]
                position += size
            view.release()
            held = held[position:]
            if not piece:
                break
    if held:
        raise JobError(f"{chunk.path} ends in the middle of a batch; run the job again")
