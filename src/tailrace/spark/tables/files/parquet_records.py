"""ParquetRecords: the records of `consume --parquet` as a Parquet file, with keys and values as bytes."""

from __future__ import annotations

import sys
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record

_ROWS_MAX: Final = 10_000  # rows of a row group
_BYTES_MAX: Final = 67_108_864


class ParquetRecords:
    def __init__(self, path: str) -> None:
        """Begin a file; `-` is standard output. Raise OSError if the file cannot be written."""
        header = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
        self._schema = pa.schema(
            [
                pa.field("topic", pa.string(), nullable=False),
                pa.field("partition", pa.int32(), nullable=False),
                pa.field("offset", pa.int64(), nullable=False),
                pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
                pa.field("key", pa.binary()),
                pa.field("value", pa.binary()),
                pa.field("headers", pa.list_(header)),
            ]
        )
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._writer = pq.ParquetWriter(sys.stdout.buffer if path == "-" else path, self._schema)

    def add(self, partition: TopicPartition, record: Record) -> None:
        self._rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": record.offset,
                "timestamp": record.timestamp if record.timestamp >= 0 else None,
                "key": record.key,
                "value": record.value,
                "headers": [{"key": name, "value": value} for name, value in record.headers],
            }
        )
        self._bytes += len(record.key or b"") + len(record.value or b"")
        if len(self._rows) >= _ROWS_MAX or self._bytes >= _BYTES_MAX:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows, self._bytes = [], 0
