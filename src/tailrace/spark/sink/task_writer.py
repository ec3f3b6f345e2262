"""TaskWriter: encodes the rows of a task, as Arrow batches, into record batches, and sends them to the brokers.

A row goes to the partition in its column `partition`, or to that of its key by Kafka's default partitioner. All other
rows of an Arrow batch go to one partition, those of the next Arrow batch to the next partition. No object is created
per row.
"""

from __future__ import annotations

import time
from array import array
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError, Refused, UnknownTopic
from tailrace.client.producing.sequenced import SequencedProducer
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_LEADER_EPOCH, TopicPartition
from tailrace.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Buffer,
    Codec,
    RecordBatch,
)
from tailrace.records.builder import batch_attributes
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.columnar.column_encoder import (
    NO_ROW,
    BytesInput,
    HeadersInput,
    IntInput,
    OpenBatch,
    RowEncoder,
    choose_batches,
)
from tailrace.spark.sink.errors import NotWritten, UnwritableRows
from tailrace.spark.sink.input_columns import InputColumns
from tailrace.spark.sink.options import WriteOptions
from tailrace.spark.sink.splitting import split_batch

REQUEST_BYTES: Final = 4_194_304  # approximate size of one send


class TaskWriter:
    def __init__(
        self,
        cluster: ClusterClient,
        producer: SequencedProducer,
        options: WriteOptions,
        columns: InputColumns,
        *,
        first_partition: int = 0,
    ) -> None:
        """Create a writer. `first_partition` is the first partition for rows without a key; tasks differ in it."""
        self._cluster = cluster
        self._producer = producer
        self._options = options
        self._columns = columns
        self._turn = first_partition
        self._encoder = RowEncoder(options.batch_size)
        self._batches: list[OpenBatch] = []
        self._places: list[TopicPartition] = []
        self._topics: dict[str, tuple[int, int]] = {}  # index of its first batch, and number of partitions
        self._sealed: dict[TopicPartition, Buffer] = {}
        self._sealed_bytes = 0

    @property
    def rows(self) -> int:
        return self._encoder.rows

    @property
    def digest(self) -> int:
        return self._encoder.digest

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self._producer.partitions})

    def write(self, rows: Any) -> None:
        """Encode the rows of an Arrow record batch. Full batches are sent."""
        columns, count = self._columns, rows.num_rows
        if count == 0:
            return
        keys = None if columns.key is None else bytes_input(rows.column(columns.key))
        partitions = None if columns.partition is None else int_input(rows.column(columns.partition), 4)
        codes, names = self._topic_codes(rows)
        placed = [self._topic(name) for name in names]
        counts, firsts = array("i", [size for _, size in placed]), array("i", [first for first, _ in placed])
        keyless = array("i", [self._turn % size for _, size in placed])
        self._turn += 1
        targets = array("i", bytes(4 * count))
        wrong = choose_batches(targets, count, keys, partitions, codes, counts, firsts, keyless)
        if wrong != NO_ROW:
            raise UnwritableRows(self._row_error(rows, wrong))
        values = bytes_input(rows.column(columns.value))
        headers = None if columns.headers is None else headers_input(rows.column(columns.headers))
        times = None if columns.timestamp is None else int_input(rows.column(columns.timestamp), 8)
        now_ms, row = time.time_ns() // 1_000_000, 0
        while True:
            try:
                row = self._encoder.encode_rows(
                    self._batches, targets, keys, values, headers, times, now_ms, row, count
                )
            except ValueError as error:
                raise UnwritableRows(str(error)) from None
            if row == count:
                return
            self._seal(targets[row])

    def finish(self) -> None:
        """Send the remaining batches."""
        for number, batch in enumerate(self._batches):
            if batch.count:
                self._seal(number)
        self._send()

    def _topic_codes(self, rows: Any) -> tuple[IntInput | None, list[str]]:
        """Return the index of each row's topic in the names, and the names. The index is None for a single topic."""
        if self._options.topic is not None or self._columns.topic is None:
            assert self._options.topic is not None
            return None, [self._options.topic]
        encoded = pc.dictionary_encode(rows.column(self._columns.topic))
        return int_input(encoded.indices, 4), encoded.dictionary.to_pylist()

    def _topic(self, name: str) -> tuple[int, int]:
        found = self._topics.get(name)
        if found is None:
            try:
                partitions = self._cluster.topic(name).topic_partitions
            except UnknownTopic:
                raise NotWritten(f"there is no topic {name!r} at {self._options.bootstrap}") from None
            except ClientError as error:
                raise NotWritten(f"topic {name!r} at {self._options.bootstrap} cannot be written to: {error}") from None
            found = self._topics[name] = (len(self._batches), len(partitions))
            self._batches += [OpenBatch() for _ in partitions]
            self._places += partitions
        return found

    def _row_error(self, rows: Any, row: int) -> str:
        columns = self._columns
        name = self._options.topic
        if name is None and columns.topic is not None:
            name = rows.column(columns.topic)[row].as_py()
        if name is None:
            return "a row has no topic: its column 'topic' is null"
        assert columns.partition is not None
        there = self._topics[name][1]
        partition = rows.column(columns.partition)[row].as_py()
        return f"a row has partition {partition}, but {name} has only the partitions 0 to {there - 1}"

    def _seal(self, number: int) -> None:
        """Complete an open batch. Before that, send sealed batches if the partition has one, or if there are enough."""
        batch, place = self._batches[number], self._places[number]
        if place in self._sealed or self._sealed_bytes >= REQUEST_BYTES:
            self._send()
        producer, codec = self._producer, self._options.codec
        data = memoryview(batch.buffer)[: batch.size]
        if codec is not Codec.NONE:
            packed = compress(codec, data[HEADER_SIZE:], self._options.level)
            data = memoryview(bytearray(HEADER_SIZE) + packed)
        HEADER.pack_into(
            data,
            0,
            0,
            len(data) - LOG_OVERHEAD,
            NO_LEADER_EPOCH,
            2,
            0,
            batch_attributes(codec, transactional=producer.transaction is not None),
            batch.count - 1,
            batch.base_timestamp,
            batch.max_timestamp,
            producer.producer_id,
            producer.epoch,
            producer.take_sequence(place, batch.count),
            batch.count,
        )
        data[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(data[ATTRIBUTES_POSITION:]).to_bytes(4, "big")
        batch.restart()
        self._sealed[place] = data
        self._sealed_bytes += len(data)

    def _send(self) -> None:
        if not self._sealed:
            return
        sealed, self._sealed, self._sealed_bytes = self._sealed, {}, 0
        for partition, error in self._sent(sealed).items():
            self._send_in_parts(partition, sealed[partition], error)

    def _sent(self, batches: dict[TopicPartition, Buffer]) -> dict[TopicPartition, ClientError]:
        try:
            return self._producer.send(batches, has_zstd=self._options.codec is Codec.ZSTD)
        except ClientError as error:
            raise NotWritten(f"{self._options.bootstrap} refused records: {error}") from None

    def _send_in_parts(self, partition: TopicPartition, data: Buffer, error: ClientError) -> None:
        """Send a batch that was too large in two halves, recursively. Raise NotWritten for any other error."""
        is_too_large = isinstance(error, Refused) and error.code == ErrorCode.MESSAGE_TOO_LARGE
        if not is_too_large or RecordBatch(memoryview(data)).record_count == 1:
            size = f" of {len(data)} bytes" if is_too_large else ""
            reason = str(error).removeprefix(f"{partition}: ")
            raise NotWritten(f"{partition} at {self._options.bootstrap} refused a batch{size}: {reason}")
        self._encoder.lower_limit(max(1, len(data) // 2))
        for half in split_batch(data, self._options.level):
            for _, refusal in self._sent({partition: half}).items():
                self._send_in_parts(partition, half, refusal)


def bytes_input(column: Any) -> BytesInput:
    if pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.binary())
    validity, ends, data = column.buffers()
    return BytesInput(ends, b"" if data is None else data, validity if column.null_count else None, column.offset)


def int_input(column: Any, width: int) -> IntInput:
    validity, data = column.buffers()
    return IntInput(data, width, validity if column.null_count else None, column.offset)


def headers_input(column: Any) -> HeadersInput:
    validity, ends = column.buffers()[:2]
    pairs = column.values  # all pairs, independent of the column's offset
    names, contents = bytes_input(pairs.field(0)), bytes_input(pairs.field(1))
    return HeadersInput(ends, validity if column.null_count else None, names, contents, column.offset)
