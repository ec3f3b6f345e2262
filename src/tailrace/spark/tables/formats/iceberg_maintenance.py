"""Maintenance of an Iceberg table: merges small files, and removes old snapshots with the files that only they need.

A merge replaces files of one partition by larger ones with the same rows, in one overwrite commit on a snapshot that
still has all of the small files. Files with row-level deletes are left alone.

    <table>/data/MERGE/…                   the files of a merge
    <table>/_tailrace/merges/MERGE.json    its marker: the files that it replaces

A merge that was killed before its commit leaves both. Once the table lacks a file that the merge was to replace, the
merge can no longer be committed, and a later merge deletes its files.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.tables.files.parquet_files import DataFile, FileLayout, ParquetFiles
from tailrace.spark.tables.files.storage import IcebergStorage, delete_folder, storage_errors
from tailrace.spark.tables.formats.iceberg_files import IcebergRows, rows_of
from tailrace.spark.tables.formats.merge_plan import SmallFile, plan_merges
from tailrace.spark.tables.formats.table import Expired


class MergeTask(NamedTuple):
    """Files of one partition that become one file."""

    rows: IcebergRows
    layout: FileLayout


@dataclass(frozen=True, slots=True)
class MergedFiles:
    id: str
    removed: list[Any]  # scan tasks of pyiceberg
    added: list[DataFile]


class IcebergMerge:
    def __init__(
        self, table: Any, storage: IcebergStorage, partition_by: tuple[str, ...], target_bytes: int, compression: str
    ) -> None:
        self._table = table
        self._storage = storage
        self._partition_by = partition_by
        self._target_bytes = target_bytes
        self._compression = compression

    def run(self, spark: Any) -> MergedFiles | None:
        """Write the merged files. Return None if no merge is worthwhile."""
        merges = plan_merges(self._small_files(), self._target_bytes)
        if not merges:
            return None
        merge_id = uuid.uuid4().hex
        removed = [file.handle for files in merges for file in files]
        MergeMarkers(self._storage).write(merge_id, [task.file.file_path for task in removed])
        layout = FileLayout(
            self._storage,
            f"data/{merge_id}",
            self._partition_by,
            target_bytes=2 * self._target_bytes,
            compression=self._compression,
        )
        tasks = [
            MergeTask(rows_of(self._table, [file.handle for file in files], self._storage.properties), layout)
            for files in merges
        ]
        added = [file for files in run_tasks(spark, tasks, merge_files, label="merge") for file in files]
        return MergedFiles(merge_id, removed, added)

    def _small_files(self) -> Iterator[SmallFile]:
        spec_id = self._table.spec().spec_id
        offset = next((field.field_id for field in self._table.schema().fields if field.name == "offset"), None)
        for task in self._table.scan().plan_files():
            file = task.file
            if not task.delete_files and file.spec_id == spec_id:
                low = (file.lower_bounds or {}).get(offset)
                first = struct.unpack("<q", low)[0] if low is not None and len(low) == 8 else 0
                yield SmallFile(task, file.file_size_in_bytes, repr(file.partition), first)


class MergeMarkers:
    """The markers of merges that are not finished."""

    def __init__(self, storage: IcebergStorage) -> None:
        self._storage = storage
        with storage_errors(storage):
            self._system, root = storage.opened()
        self._folder = f"{root}/_tailrace/merges" if root else "_tailrace/merges"

    def write(self, merge_id: str, removed: Iterable[str]) -> None:
        with storage_errors(self._storage), self._system.open_output_stream(f"{self._folder}/{merge_id}.json") as file:
            file.write(json.dumps({"removes": list(removed)}).encode())

    def delete(self, merge_id: str, *, with_files: bool) -> None:
        """Delete a marker, and the files of its merge if it was not committed."""
        with storage_errors(self._storage):
            if with_files:
                delete_folder(self._storage, f"data/{merge_id}")
            with suppress(FileNotFoundError):  # another program has deleted it
                self._system.delete_file(f"{self._folder}/{merge_id}.json")

    def sweep(self, there: set[str], names_folder: Callable[[str], bool]) -> None:
        """Delete the files of merges that can no longer be committed. `there` are the data files of the table."""
        for merge_id, removed in self._found().items():
            if not removed <= there:
                self.delete(merge_id, with_files=not names_folder(merge_id))

    def _found(self) -> dict[str, set[str]]:
        """Return the files that each merge was to replace."""
        from pyarrow import fs

        found: dict[str, set[str]] = {}
        with storage_errors(self._storage):
            for info in self._system.get_file_info(fs.FileSelector(self._folder, allow_not_found=True)):
                try:
                    with self._system.open_input_stream(info.path) as file:
                        found[info.base_name.removesuffix(".json")] = set(json.loads(file.read())["removes"])
                except (FileNotFoundError, ValueError):
                    continue  # another program is writing or deleting it
        return found


def merge_files(task: MergeTask) -> list[DataFile]:
    """Write the rows of some files into one file, in a task."""
    files: ParquetFiles | None = None
    try:
        for rows in task.rows.read():
            files = files or ParquetFiles(task.layout, rows.schema, uuid.uuid4().hex)
            files.write(rows)
        return [] if files is None else files.close()
    except BaseException:
        if files is not None:
            files.abandon()
        raise


def expire_snapshots(table: Any, older_than_ms: int) -> Expired:
    """Remove snapshots of an age, except those with a name, and then the files that no other snapshot needs.

    If the table has branches or tags besides main, only the snapshots are removed.
    """
    metadata = table.metadata
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    old = [one for one in metadata.snapshots if one.timestamp_ms < older_than_ms and one.snapshot_id not in named]
    if not old:
        return Expired()
    dead = _dead_files(table, {one.snapshot_id for one in old}) if set(metadata.refs) == {"main"} else set()
    table.maintenance.expire_snapshots().by_ids([one.snapshot_id for one in old]).commit()
    for path in sorted(dead):
        try:
            table.io.delete(path)
        except FileNotFoundError:
            continue  # another program has deleted it
    return Expired(len(old), len(dead))


def _dead_files(table: Any, old: set[int]) -> set[str]:
    """Return the files that only old snapshots need: data files that they removed, manifests, and manifest lists."""
    ancestors, snapshot = set(), table.current_snapshot()
    while snapshot is not None:
        ancestors.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)
    kept: set[str] = set()
    dead: set[str] = set()
    for one in table.metadata.snapshots:
        if one.snapshot_id not in old:
            kept |= {manifest.manifest_path for manifest in one.manifests(table.io)}
    for one in table.metadata.snapshots:
        if one.snapshot_id not in old:
            continue
        dead.add(one.manifest_list)
        for manifest in one.manifests(table.io):
            if manifest.manifest_path not in kept:
                dead.add(manifest.manifest_path)
            if one.snapshot_id in ancestors and manifest.added_snapshot_id == one.snapshot_id:
                dead |= _removed_files(table, manifest)
    return dead


def _removed_files(table: Any, manifest: Any) -> set[str]:
    from pyiceberg.manifest import ManifestEntryStatus

    if manifest.deleted_files_count == 0:
        return set()
    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    return {entry.data_file.file_path for entry in entries if entry.status == ManifestEntryStatus.DELETED}
