"""Writes rows as Parquet files of a target size, one open file for each partition of the table.

Rows are collected until they fill a row group. A file is closed at its target size. The memory for collected rows and
the number of open files are bounded: the largest group is written early, and the file that was used least recently is
closed early.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailrace.spark.tables.files.parquet_statistics import statistics_of
from tailrace.spark.tables.files.storage import Storage

GROUP_ROWS = 256 * 1024
GROUP_BYTES = 64 * 1024 * 1024
HELD_BYTES = 192 * 1024 * 1024
OPEN_FILES = 64
# Values rarely repeat. A dictionary for them would cost half of the CPU time of writing, and make the file larger.
NO_DICTIONARY = frozenset({"value", "offset", "timestamp"})
ENCODINGS = {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"}

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")

PartitionKey = tuple[tuple[str, Any], ...]  # name and value of each partition column


class DataFile(NamedTuple):
    """A Parquet file, by its path below the table's location."""

    path: str
    size: int
    records: int
    partition: PartitionKey
    statistics: str  # in the JSON form of Delta


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Location and form of the files of one round."""

    storage: Storage
    folder: str  # below the table's location, of this round only
    partition_by: tuple[str, ...] = ()  # column names, and `date` and `hour` of the timestamp
    keeps_partition_columns: bool = True  # False: only names of files have the values of columns in partition_by
    target_bytes: int = 256 * 1024 * 1024
    compression: str = "zstd"


@dataclass(slots=True)
class _OpenFile:
    path: str
    sink: Any
    writer: Any
    held: list[Any] = field(default_factory=list)
    held_bytes: int = 0
    held_rows: int = 0


class _Writer(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
    def abandon(self) -> None:
        """Leave the file incomplete. Otherwise Python would complete it when it deletes this object."""
        self.is_open = False


class ParquetFiles:
    """The files of one task. `write` adds rows; `close` returns all files."""

    def __init__(self, layout: FileLayout, schema: Any, name: str) -> None:
        self._layout = layout
        left_out = () if layout.keeps_partition_columns else layout.partition_by
        self._schema = pa.schema([column for column in schema if column.name not in left_out])
        self._name = name
        self._system, self._root = layout.storage.opened()
        self._open: dict[PartitionKey, _OpenFile] = {}
        self._files: list[DataFile] = []
        self._held = 0
        self._count = 0

    def write(self, rows: Any) -> None:
        for key, part in split(rows, self._layout.partition_by):
            file = self._open.pop(key, None) or self._new(key)
            self._open[key] = file  # the last key is the most recently used one
            part = part.select(self._schema.names)
            file.held.append(part)
            file.held_rows += part.num_rows
            file.held_bytes += part.nbytes
            self._held += part.nbytes
            if file.held_rows >= GROUP_ROWS or file.held_bytes >= GROUP_BYTES:
                self._flush(key, file)
        while self._held > HELD_BYTES:
            self._flush(*max(self._open.items(), key=lambda item: item[1].held_bytes))
        while len(self._open) > OPEN_FILES:
            self._close(next(iter(self._open)))

    def close(self) -> list[DataFile]:
        for key in list(self._open):
            self._close(key)
        return self._files

    def abandon(self) -> None:
        """Close the files without a valid end, after an error."""
        for file in self._open.values():
            file.writer.abandon()
            file.sink.close()
        self._open = {}

    def _new(self, key: PartitionKey) -> _OpenFile:
        # The folders are for people only, so characters that an address would have to escape are replaced.
        folders = "".join(f"{name}={_UNSAFE.sub('_', str(value))}/" for name, value in key)
        path = f"{self._layout.folder}/{folders}{self._name}-{self._count:04d}.parquet"
        self._count += 1
        sink = self._system.open_output_stream(f"{self._root}/{path}" if self._root else path)
        writer = _Writer(
            sink,
            self._schema,
            compression=self._layout.compression,
            use_dictionary=[leaf for leaf in _leaves(self._schema) if leaf.partition(".")[0] not in NO_DICTIONARY],
            column_encoding={name: kind for name, kind in ENCODINGS.items() if name in self._schema.names},
        )
        return _OpenFile(path, sink, writer)

    def _flush(self, key: PartitionKey, file: _OpenFile) -> None:
        if file.held:
            # Columns of different chunks may have different buffers; the writer copes with both.
            file.writer.write_table(pa.concat_tables(file.held), row_group_size=GROUP_ROWS)
        self._held -= file.held_bytes
        file.held, file.held_rows, file.held_bytes = [], 0, 0
        if file.sink.tell() >= self._layout.target_bytes:
            self._close(key)

    def _close(self, key: PartitionKey) -> None:
        file = self._open[key]
        if file.held:
            file.writer.write_table(pa.concat_tables(file.held), row_group_size=GROUP_ROWS)
            self._held -= file.held_bytes
        file.writer.close()
        size = file.sink.tell()
        file.sink.close()
        del self._open[key]
        footer = file.writer.writer.metadata
        self._files.append(DataFile(file.path, size, footer.num_rows, key, json.dumps(statistics_of(footer))))


def split(rows: Any, names: Sequence[str]) -> Iterator[tuple[PartitionKey, Any]]:
    """Yield the rows of each partition of the table, with the partition's values."""
    if not rows.num_rows:
        return
    if not names:
        yield (), rows
        return
    columns = [_partition_column(rows, name) for name in names]
    encoded = [pc.dictionary_encode(column, null_encoding="encode").combine_chunks() for column in columns]
    combined = None
    for column in encoded:
        indices = pc.cast(column.indices, pa.int64())
        step = max(1, len(column.dictionary))
        combined = indices if combined is None else pc.add(pc.multiply(combined, step), indices)
    codes = pc.unique(combined)
    for code in codes.to_pylist():
        part = rows if len(codes) == 1 else rows.filter(pc.equal(combined, code))
        values = []
        for column in reversed(encoded):
            code, index = divmod(code, max(1, len(column.dictionary)))
            values.append(column.dictionary[index].as_py())
        yield tuple(zip(names, reversed(values), strict=True)), part


def _partition_column(rows: Any, name: str) -> Any:
    if name in rows.column_names:
        return rows.column(name)
    if name == "date":
        return pc.cast(pc.floor_temporal(rows.column("timestamp"), unit="day"), pa.date32())
    return pc.cast(pc.hour(rows.column("timestamp")), pa.int32())


def _leaves(schema: Any) -> Iterator[str]:
    for column in schema:
        yield from _below(column.name, column.type)


def _below(path: str, kind: Any) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _below(f"{path}.{kind.field(number).name}", kind.field(number).type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _below(f"{path}.list.element", kind.value_type)
    elif pa.types.is_map(kind):
        yield from _below(f"{path}.key_value.key", kind.key_type)
        yield from _below(f"{path}.key_value.value", kind.item_type)
    else:
        yield path
