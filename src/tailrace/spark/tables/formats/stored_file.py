"""StoredFile: a data file that a table has, and how workers read its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from tailrace.spark.tables.files.storage import Storage


class Rows(Protocol):
    """The rows of a file. It is pickled to workers."""

    def read(self) -> Iterator[Any]:
        """Yield the rows as pyarrow.Tables, with the columns that the file has."""


class StoredFile(NamedTuple):
    handle: Any  # identifies the file in the format: a path, or an entry of the table
    partition: int  # the value of the table's only partition column
    rows: Rows


class ParquetRows(NamedTuple):
    storage: Storage
    path: str  # below the table's location

    def read(self) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        system, root = self.storage.opened()
        with system.open_input_file(f"{root}/{self.path}" if root else self.path) as file:
            for batch in pq.ParquetFile(file).iter_batches():
                yield pa.Table.from_batches([batch])
