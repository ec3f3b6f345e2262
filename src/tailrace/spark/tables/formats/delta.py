"""DeltaTable: a table of delta-rs. The ends of the table are `txn` actions of its log.

A `txn` action has only an application id and a version. So each topic partition is an application, and its version is
the next offset to add. The ids of topic and cluster are text, stored in versions of further applications. Every commit
of an export also has all of them as readable JSON in its commit information, under the key `tailrace`.

delta-rs refuses a commit if another commit since its snapshot has changed an application that the commit changes too.
So two exports cannot both add the same offsets.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError, can_heal
from tailrace.spark.source.transports.topic_identity import TopicIdentity
from tailrace.spark.tables.files.parquet_files import DataFile, FileLayout
from tailrace.spark.tables.files.storage import DeltaStorage
from tailrace.spark.tables.formats.delta_merge import merge_files
from tailrace.spark.tables.formats.partitioning import delta_columns
from tailrace.spark.tables.formats.stored_file import ParquetRows, StoredFile
from tailrace.spark.tables.formats.table import NO_PROPERTIES, Expired, Merged
from tailrace.spark.tables.table_ends import (
    COMMIT,
    CommitUnknown,
    ConcurrentChange,
    Round,
    TableEnds,
    TopicEnds,
    to_properties,
)
from tailrace.spark.typed.evolution.evolve_tables import delta_schema, evolve_delta

ATTEMPTS = 10
_PAUSE_S = 0.2
_RECENT = 100  # commits that are searched for one's own after a lost answer
_INFO = "tailrace"
_HOUR_MS = 3_600_000
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class DeltaTable:
    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        """`options` are storage options of delta-rs. Omitted ones come from the environment."""
        try:
            import deltalake
        except ImportError:
            raise JobError("Delta tables need deltalake: pip install 'tailrace[delta]'") from None
        self._rs = deltalake
        self.name = uri
        self.storage = DeltaStorage(uri, dict(options or {}))
        self._partition_by: tuple[str, ...] = ()
        self._kept: Any = None

    def _load(self) -> Any:
        """Return the table at its current version. To load it reads all of its log, so it is kept and updated."""
        kept, self._kept = self._kept, None
        if kept is None:
            kept = self._load_apart()
        else:
            kept.update_incremental()
        self._kept = kept  # not after an error
        return kept

    def _load_apart(self) -> Any:
        """Return the table for work in another thread. The kept one must not move between a check and its commit."""
        return self._rs.DeltaTable(self.name, storage_options=self.storage.options)

    def _tried(self, work: Callable[[], Any], what: str) -> Any:
        """Run `work`. Raise errors of delta-rs and of its object stores, which have no common class, as JobErrors."""
        try:
            return work()
        except JobError:
            raise
        except Exception as error:
            raise JobError(f"table {self.name} {what}: {reason(error)}", is_transient=can_heal(error)) from error

    # Opening

    def open(
        self,
        schema: Any,
        partition_by: Sequence[str],
        *,
        evolves: bool = False,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Any:
        full, columns = delta_columns(partition_by, schema)

        def create() -> Any:
            self._rs.DeltaTable.create(
                self.name,
                schema=full,
                mode="ignore",
                partition_by=list(columns),
                storage_options=self.storage.options,
                configuration=dict(properties),
                raise_if_key_not_exists=False,
            )
            return self._load()

        table = self._tried(create, "cannot be opened")
        there = list(table.metadata().partition_columns)
        if partition_by and there != list(columns):
            raise JobError(f"table {self.name} exists and is not partitioned by {','.join(partition_by)}")
        self._check_not_restored(table)
        self._partition_by = tuple(there)
        if evolves:
            schema, table = self.evolve(schema), self._load()
        self._check_schema(table, delta_columns(there, schema)[0])
        return schema

    def evolve(self, schema: Any) -> Any:
        import pyarrow as pa

        full = delta_columns(self._partition_by, schema)[0]
        found = evolve_delta(self._load, full, self.name, self.storage.options)
        return pa.schema([found.field(name) for name in schema.names])

    def _check_schema(self, table: Any, schema: Any) -> None:
        import pyarrow as pa

        mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mode != "none":
            raise JobError(f"table {self.name} has delta.columnMapping.mode={mode}; an export needs the mode none")
        wanted = pa.schema(self._rs.Schema.from_arrow(schema).to_arrow())
        there = pa.schema(table.schema().to_arrow())
        for field in wanted:
            if field.name not in there.names:
                raise JobError(f"table {self.name} cannot take these rows: it has no column {field.name}")
            found = there.field(field.name).type
            if found != field.type:
                raise JobError(
                    f"table {self.name} cannot take these rows: column {field.name} is {found} there, not {field.type}"
                )
        for name in there.names:
            if name not in wanted.names and not there.field(name).nullable:
                raise JobError(f"table {self.name} cannot take these rows: they have no value for its column {name}")

    def _check_not_restored(self, table: Any) -> None:
        """Raise JobError if the table was restored after an export: its rows are older then, but not its ends."""
        for commit in self._tried(lambda: table.history(_RECENT), "cannot be read"):
            if commit.get(_INFO) is not None:
                return
            if commit.get("operation") == "RESTORE":
                raise JobError(
                    f"table {self.name} was restored to an older version after its last export, but a restore keeps "
                    "the offsets in the table, so the removed records would be missing; export into another table"
                )

    def properties(self) -> Mapping[str, str] | None:
        def read() -> Mapping[str, str] | None:
            try:
                found: Mapping[str, str] = self._load().metadata().configuration
            except self._rs.exceptions.TableNotFoundError:
                return None
            return found

        found: Mapping[str, str] | None = self._tried(read, "cannot be loaded")
        return found

    def schema(self) -> Any:
        return self._tried(lambda: delta_schema(self._load()), "cannot be loaded")

    def layout(self, round_id: str, *, target_bytes: int, compression: str) -> FileLayout:
        return FileLayout(
            self.storage,
            f"data/{round_id}",
            self._partition_by,
            keeps_partition_columns=False,
            target_bytes=target_bytes,
            compression=compression,
        )

    # Commits

    def ends(self, partitions: Iterable[TopicPartition]) -> TableEnds:
        found: TableEnds = self._tried(
            lambda: read_ends(self._load().transaction_version, partitions), "cannot be loaded"
        )
        return found

    def add(self, round_: Round, files: Sequence[DataFile]) -> None:
        self.replace(round_, (), files)

    def stored_files(self) -> dict[int, list[StoredFile]]:
        found: dict[int, list[StoredFile]] = {}
        for path, value in self._tried(lambda: self._files_by_value(self._load()), "cannot be loaded").items():
            found.setdefault(value, []).append(StoredFile(path, value, ParquetRows(self.storage, path)))
        return found

    def _files_by_value(self, table: Any) -> dict[str, int]:
        """Return the files, each with its value of the only partition column."""
        import pyarrow as pa

        if "deletionVectors" in (table.protocol().reader_features or ()):
            raise JobError(f"table {self.name} has deletion vectors, which an export with --latest cannot read")
        found = pa.table(table.get_add_actions(flatten=True))
        values = found.column(f"partition.{self._partition_by[0]}")
        return dict(zip(found.column("path").to_pylist(), values.to_pylist(), strict=True))

    def replace(self, round_: Round, replaced: Sequence[StoredFile], files: Sequence[DataFile]) -> None:
        from deltalake.transaction import AddAction

        values = {file.partition for file in replaced}
        removed = {file.handle for file in replaced}
        now_ms = int(time.time() * 1000)
        actions = [AddAction(file.path, file.size, _texts(file), now_ms, True, file.statistics) for file in files]

        def commit(table: Any) -> None:
            there = read_ends(table.transaction_version, round_.ends)
            round_.check_follows(self.name, there)
            if removed and removed != {path for path, value in self._files_by_value(table).items() if value in values}:
                raise ConcurrentChange("another program has changed a file while it was rewritten")
            after = round_.ends_after(there)
            versions = [self._rs.Transaction(name, version) for name, version in to_versions(after, there).items()]
            properties = self._rs.CommitProperties(
                custom_metadata={_INFO: json.dumps({COMMIT: round_.id, **to_properties(after)})},
                app_transactions=versions,
            )
            table.create_write_transaction(
                actions,
                "overwrite" if removed else "append",
                table.schema(),
                list(self._partition_by),
                [(self._partition_by[0], "in", sorted(map(str, values)))] if removed else None,
                commit_properties=properties,
            )

        self._commit(round_.id, commit)

    def names_folder(self, round_id: str) -> bool:
        import pyarrow as pa

        def find() -> bool:
            table = self._load()
            if has_commit(table.history(), round_id):
                return True
            paths = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
            return any(path.startswith(f"data/{round_id}/") for path in paths)

        return bool(self._tried(find, "cannot be loaded"))

    def _commit(self, commit_id: str, commit: Callable[[Any], None]) -> None:
        """Commit to the current version of the table. Repeat after conflicts and lost answers."""
        problem: Exception | None = None
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(min(5.0, _PAUSE_S * 2**attempt) * random.uniform(0.5, 1.0))
            try:
                table = self._load()
                if attempt and has_commit(table.history(_RECENT), commit_id):
                    return  # an earlier attempt succeeded, but its answer was lost
                commit(table)
                return
            except JobError:
                raise
            except Exception as error:
                problem = error
        assert problem is not None
        raise CommitUnknown(
            f"table {self.name} cannot be committed to ({ATTEMPTS} attempts): {reason(problem)}; "
            "run the export again: it continues where the table ends",
            is_transient=can_heal(problem),
        ) from problem

    # Maintenance

    def merge(self, spark: Any, *, target_bytes: int, compression: str) -> Merged:
        try:
            return merge_files(self._load_apart(), target_bytes=target_bytes, compression=compression)
        except self._rs.exceptions.CommitFailedError:
            return Merged()  # another program has changed the files; they are merged later
        except Exception as error:
            text = f"files of table {self.name} cannot be merged: {reason(error)}"
            raise JobError(text, is_transient=can_heal(error)) from error

    def expire(self, older_than_ms: int) -> Expired:
        hours = max(0, (int(time.time() * 1000) - older_than_ms) // _HOUR_MS)
        deleted = self._tried(
            # `full` also deletes files that no commit names, such as those of an OPTIMIZE that was killed.
            lambda: self._load().vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True),
            "cannot be cleaned of old files",
        )
        return Expired(0, len(deleted))


# The ends as versions of applications


def _application(topic: str, *parts: object) -> str:
    return "/".join(("tailrace", topic, *map(str, parts)))


def _pieces(text: str) -> list[int]:
    """Return a text as numbers of 57 bits."""
    data = text.encode()
    return [int.from_bytes(b"\x01" + data[at : at + 7]) for at in range(0, len(data), 7)]


def to_versions(after: TableEnds, before: TableEnds) -> dict[str, int]:
    """Return application ids and versions for ends that have changed, and for ids of topics that are new."""
    versions: dict[str, int] = {}
    for topic, found in after.topics.items():
        known = before.topics.get(topic)
        for number, end in found.ends.items():
            if known is None or known.ends.get(number) != end:
                versions[_application(topic, number)] = end
        if known is None:
            for name, text in (("topic-id", found.identity.topic_id), ("cluster-id", found.identity.cluster_id)):
                versions |= {_application(topic, name, at): piece for at, piece in enumerate(_pieces(text))}
    return versions


def read_ends(version_of: Callable[[str], int | None], partitions: Iterable[TopicPartition]) -> TableEnds:
    """Return the recorded ends of some partitions."""
    ends: dict[str, dict[int, int]] = {}
    for topic, number in partitions:
        end = version_of(_application(topic, number))
        if end is not None:
            ends.setdefault(topic, {})[number] = end
    return TableEnds({topic: TopicEnds(_identity(version_of, topic), found) for topic, found in ends.items()})


def _identity(version_of: Callable[[str], int | None], topic: str) -> TopicIdentity:
    def text(name: str) -> str:
        data, at = b"", 0
        while (piece := version_of(_application(topic, name, at))) is not None:
            data += piece.to_bytes(8).lstrip(b"\x00")[1:]
            at += 1
        return data.decode()

    return TopicIdentity(text("topic-id"), text("cluster-id"))


def has_commit(history: Iterable[Mapping[str, Any]], commit_id: str) -> bool:
    """Return True if a recent commit is the one with the id."""
    for commit in history:
        info = commit.get(_INFO)
        if info is not None and json.loads(info).get(COMMIT) == commit_id:
            return True
    return False


def reason(error: BaseException) -> str:
    """Return the first and the last line of an error: delta-rs reports the cause as an indented tree with colours."""
    lines = [line.strip() for line in _COLOURS.sub("", str(error)).replace("↳", "").splitlines() if line.strip()]
    return ": ".join(dict.fromkeys([lines[0], lines[-1]])) if lines else type(error).__name__


# Files


def _texts(file: DataFile) -> dict[str, str | None]:
    """Return partition values in the form of Delta's log."""
    return {name: None if value is None else str(value) for name, value in file.partition}
