"""RoundFiles: the folders of rounds, and a marker for each round that is not finished.

    <table>/data/ROUND/…            the files of a round
    <table>/_tailrace/ROUND.json    its marker: the ends that the table must have for the commit

A round that was killed before its commit leaves its folder and its marker. Once the table ends after the offsets in the
marker, the round can no longer be committed. If the table does not name its files either, they are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyarrow import fs

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.tables.files.parquet_files import DataFile
from tailrace.spark.tables.files.storage import Storage, delete_folder, storage_errors
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.table_ends import Round

_MARKERS = "_tailrace"


class RoundFiles:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        with storage_errors(storage):
            self._system, self._root = storage.opened()
        self._is_swept = False

    def _path(self, *names: str) -> str:
        return "/".join((*((self._root,) if self._root else ()), *names))

    def begin(self, round_: Round) -> None:
        """Write the marker of a round, before its files."""
        expected = [[*partition, end] for partition, end in sorted(round_.expected.items())]
        with storage_errors(self._storage):
            path = self._path(_MARKERS, f"{round_.id}.json")
            with self._system.open_output_stream(path) as file:
                file.write(json.dumps({"expected": expected}).encode())

    def end(self, round_: Round, files: Sequence[DataFile]) -> None:
        """Delete the marker of a committed round, and files of repeated tasks that its commit does not name."""
        with storage_errors(self._storage):
            delete_folder(self._storage, f"data/{round_.id}", keep=frozenset(file.path for file in files))
            self._delete_marker(f"{round_.id}.json")

    def discard(self, round_: Round) -> None:
        """Delete the files of a round that the table has refused."""
        with storage_errors(self._storage):
            delete_folder(self._storage, f"data/{round_.id}")
            self._delete_marker(f"{round_.id}.json")

    def _delete_marker(self, name: str) -> None:
        try:
            self._system.delete_file(self._path(_MARKERS, name))
        except FileNotFoundError:
            return  # another export has swept it

    def sweep(self, table: Table) -> int:
        """Delete the files of dead rounds. Return their number. After a call without markers, do nothing."""
        if self._is_swept:
            return 0
        with storage_errors(self._storage):
            return self._sweep(table)

    def _sweep(self, table: Table) -> int:
        selector = fs.FileSelector(self._path(_MARKERS), allow_not_found=True)
        names = [info.base_name for info in self._system.get_file_info(selector) if info.base_name.endswith(".json")]
        self._is_swept = not names
        expected = {name: found for name in names if (found := self._expected(name)) is not None}
        # The ends only grow. They are read after the markers, so an end above that of a marker is a later one.
        there = table.ends(sorted({partition for ends in expected.values() for partition in ends}))
        deleted = 0
        for name, ends in expected.items():
            round_id = name.removesuffix(".json")
            if any((there.end_of(partition) or 0) > (end or 0) for partition, end in ends.items()):
                if not table.names_folder(round_id):
                    deleted += delete_folder(self._storage, f"data/{round_id}")
                self._delete_marker(name)
        return deleted

    def _expected(self, name: str) -> dict[TopicPartition, Offset | None] | None:
        """Read a marker. Return None if another program is writing or deleting it."""
        try:
            with self._system.open_input_stream(self._path(_MARKERS, name)) as file:
                found = json.loads(file.read())["expected"]
        except (FileNotFoundError, ValueError):
            return None
        return {TopicPartition(topic, number): end for topic, number, end in found}
