"""Table: what an export needs of a table format. iceberg.py and delta.py have the two implementations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tailrace.model.ids import TopicPartition
from tailrace.spark.tables.files.parquet_files import DataFile, FileLayout
from tailrace.spark.tables.files.storage import Storage
from tailrace.spark.tables.formats.stored_file import StoredFile
from tailrace.spark.tables.table_ends import Round, TableEnds

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


class Merged(NamedTuple):
    """The result of a merge of small files."""

    files_before: int = 0
    files_after: int = 0


class Expired(NamedTuple):
    """The result of expiring snapshots."""

    snapshots: int = 0
    files: int = 0


class Table(Protocol):
    @property
    def name(self) -> str:
        """The name for messages."""

    @property
    def storage(self) -> Storage: ...

    def open(
        self,
        schema: Any,
        partition_by: Sequence[str],
        *,
        evolves: bool = False,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Any:
        """Create the table, with these properties, if there is none. Return the schema for the rows, which may have
        wider types.

        With `evolves`, the table is changed as `evolve` does. Raise JobError if it cannot take rows of the schema.
        """

    def evolve(self, schema: Any) -> Any:
        """Change the table for rows of a newer schema. Return the schema for the rows."""

    def properties(self) -> Mapping[str, str] | None:
        """Return the properties of the table; None if there is no table."""

    def schema(self) -> Any:
        """Return the pyarrow.Schema of all columns of the table."""

    def layout(self, round_id: str, *, target_bytes: int, compression: str) -> FileLayout:
        """Return location and form of the files of a round."""

    def ends(self, partitions: Iterable[TopicPartition]) -> TableEnds:
        """Read from the table where it ends now, at least for some partitions."""

    def add(self, round_: Round, files: Sequence[DataFile]) -> None:
        """Add the files and move the ends in one commit.

        The commit is repeated if another program changed the table, as long as the round follows its ends. Raise
        ConcurrentChange if it does not: then the table names none of the files. If the answer to a commit is lost, the
        table is read to see if the commit succeeded.
        """

    def stored_files(self) -> dict[int, list[StoredFile]]:
        """Return the files of a table with one partition column of integers, by their values of it."""

    def replace(self, round_: Round, replaced: Sequence[StoredFile], files: Sequence[DataFile]) -> None:
        """Do as `add`, and remove files in the same commit: all files with their values of the partition column.

        Raise ConcurrentChange if another program has changed the files with these values.
        """

    def names_folder(self, round_id: str) -> bool:
        """Return True if the table names files of a round, now or in its known history."""

    def merge(self, spark: Any, *, target_bytes: int, compression: str) -> Merged:
        """Replace small files by larger ones, where it is worthwhile, in one commit. The ends stay.

        It may run in another thread than the rest.
        """

    def expire(self, older_than_ms: int) -> Expired:
        """Remove snapshots older than a time, and the files that only they need."""
