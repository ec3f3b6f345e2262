"""The data files of an Iceberg table: workers read them, and commits replace them by others.

Files with row-level deletes are read without the deleted rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tailrace.spark.tables.files.parquet_files import DataFile
from tailrace.spark.tables.table_ends import ConcurrentChange


class IcebergRows(NamedTuple):
    """Files of one partition. `scan` holds the table's metadata and pyiceberg's scan tasks, pickled for a worker."""

    scan: bytes
    properties: dict[str, str]

    def read(self) -> Iterator[Any]:
        """Yield the rows of the files, with the schema of the table."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan, PyArrowFileIO, schema_to_pyarrow

        metadata, scan_tasks = pickle.loads(self.scan)
        schema = schema_to_pyarrow(metadata.schema(), include_field_ids=False)
        scan = ArrowScan(metadata, PyArrowFileIO(self.properties), metadata.schema(), AlwaysTrue())
        for scan_task in scan_tasks:
            for batch in scan.to_record_batches([scan_task]):
                yield pa.Table.from_batches([batch]).cast(schema)


def rows_of(table: Any, scan_tasks: Sequence[Any], properties: dict[str, str]) -> IcebergRows:
    # Workers need the schemas of the table, but not its history.
    metadata = table.metadata.model_copy(update={"snapshots": [], "snapshot_log": [], "metadata_log": []})
    return IcebergRows(pickle.dumps((metadata, list(scan_tasks))), properties)


def check_unchanged(table: Any, removed: Iterable[Any]) -> None:
    """Raise ConcurrentChange if a file to replace is no longer in the table, or has other row-level deletes."""
    # A row-level delete may replace a delete file, as it does with deletion vectors. Then the number stays the same.
    deletes = {task.file.file_path: _delete_paths(task) for task in table.scan().plan_files()}
    for task in removed:
        if deletes.get(task.file.file_path) != _delete_paths(task):
            raise ConcurrentChange("another program has changed a file while it was rewritten")


def _delete_paths(scan_task: Any) -> set[str]:
    return {one.file_path for one in scan_task.delete_files}


def stage_replacement(
    table: Any,
    transaction: Any,
    removed: Iterable[Any],
    added: Iterable[DataFile],
    location: str,
    summary: dict[str, str],
) -> None:
    """Stage an overwrite: remove the files of scan tasks, and add files below `location`."""
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    with transaction.update_snapshot(snapshot_properties=summary).overwrite() as update:
        for task in removed:
            update.delete_data_file(task.file)
        for file in added:
            update.append_data_file(parquet_file_to_data_file(table.io, table.metadata, f"{location}/{file.path}"))
