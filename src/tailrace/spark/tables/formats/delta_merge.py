"""Merges small files of a Delta table with the OPTIMIZE of delta-rs, which runs in this process.

OPTIMIZE has no list of files. It leaves out files above its target size, and joins neighbours up to that size. So the
target is the size of the largest planned merge: files that are not part of the plan are usually larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.spark.tables.files.parquet_files import ENCODINGS, NO_DICTIONARY
from tailrace.spark.tables.formats.merge_plan import SmallFile, plan_merges
from tailrace.spark.tables.formats.table import Merged


def merge_files(table: Any, *, target_bytes: int, compression: str) -> Merged:
    """Merge in one commit. Raise deltalake's CommitFailedError if another program has changed the files."""
    merges = plan_merges(_small_files(table), target_bytes)
    if not merges:
        return Merged()
    largest = max(sum(file.size for file in files) for files in merges)
    found = table.optimize.compact(
        target_size=min(largest, target_bytes),
        writer_properties=_writer_properties(table.schema().to_arrow(), compression),
    )
    return Merged(found["numFilesRemoved"], found["numFilesAdded"])


def _small_files(table: Any) -> Iterator[SmallFile]:
    import pyarrow as pa

    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        partition = {name: value for name, value in row.items() if name.startswith("partition.")}
        yield SmallFile(row["path"], row["size_bytes"], repr(sorted(partition.items())), row.get("min.offset") or 0)


def _writer_properties(schema: Any, compression: str) -> Any:
    """Return the form of the files, which is that of the files of rounds."""
    from deltalake import ColumnProperties, WriterProperties

    names = {field.name for field in schema}
    columns = {
        name: ColumnProperties(dictionary_enabled=False, encoding=ENCODINGS.get(name))  # type: ignore[arg-type]
        for name in sorted(NO_DICTIONARY & names)
    }
    return WriterProperties(
        compression="UNCOMPRESSED" if compression == "none" else compression.upper(),  # type: ignore[arg-type]
        column_properties=columns,
    )
