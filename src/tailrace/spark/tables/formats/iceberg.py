"""IcebergTable: a table in any catalog of pyiceberg. The ends of the table are properties of its snapshots.

Every commit of an export writes the complete ends of its topics as snapshot properties, and as table properties in the
same commit. Readers walk from the current snapshot through its ancestors, so commits of other programs and rollbacks
are harmless. The table properties are read only if expired snapshots interrupt the walk.

pyiceberg would repeat a failed append on top of the commit that caused the failure. This would add records twice, so a
commit of an export is tried only on the snapshot whose ends were checked.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError, can_heal
from tailrace.spark.jobs.spark_session import first_sentence
from tailrace.spark.tables.files.parquet_files import DataFile, FileLayout
from tailrace.spark.tables.files.storage import IcebergStorage
from tailrace.spark.tables.formats.iceberg_files import check_unchanged, rows_of, stage_replacement
from tailrace.spark.tables.formats.iceberg_maintenance import IcebergMerge, MergeMarkers, expire_snapshots
from tailrace.spark.tables.formats.partitioning import TimeUnit, file_columns, iceberg_fields
from tailrace.spark.tables.formats.stored_file import StoredFile
from tailrace.spark.tables.formats.table import NO_PROPERTIES, Expired, Merged
from tailrace.spark.tables.table_ends import (
    COMMIT,
    PREFIX,
    CommitUnknown,
    ConcurrentChange,
    Round,
    TableEnds,
    read_properties,
    to_properties,
)
from tailrace.spark.typed.evolution.evolve_tables import evolve_iceberg, iceberg_schema

ATTEMPTS = 10
_PAUSE_S = 0.2
_SEQUENCE = "sequence"  # in the ends of the table's properties: the sequence number of their snapshot
# Properties of a new table: the metadata of a table with frequent commits stays small.
_NEW_TABLE = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}


class IcebergTable:
    def __init__(
        self, identifier: str, catalog: str | None = None, properties: Mapping[str, str] | None = None
    ) -> None:
        """Open the catalog. `catalog` and `properties` are those of pyiceberg.catalog.load_catalog."""
        if "." not in identifier.strip("."):
            raise JobError(f"{identifier!r} is not the name of an Iceberg table: write NAMESPACE.TABLE")
        self.name = identifier
        self._catalog = _load_catalog(catalog, dict(properties or {}))
        self._storage: IcebergStorage | None = None
        self._partition_by: tuple[str, ...] = ()

    @property
    def storage(self) -> IcebergStorage:
        assert self._storage is not None, "the table is not open"
        return self._storage

    def _load(self) -> Any:
        return _tried(lambda: self._catalog.load_table(self.name), f"table {self.name} cannot be loaded")

    # Opening

    def open(
        self,
        schema: Any,
        partition_by: Sequence[str],
        *,
        evolves: bool = False,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Any:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            table = self._catalog.load_table(self.name)
        except NoSuchTableError:
            table = _tried(
                lambda: self._create(schema, partition_by, properties), f"table {self.name} cannot be created"
            )
        except Exception as error:
            raise JobError(f"table {self.name} cannot be loaded: {first_sentence(error)}") from error
        if evolves:
            schema, table = self.evolve(schema), self._load()
        self._check_schema(table, schema)
        self._partition_by = self._check_partitions(table, partition_by)
        access = {key: str(value) for key, value in table.io.properties.items()}
        self._storage = IcebergStorage(table.location().rstrip("/"), access)
        return schema

    def evolve(self, schema: Any) -> Any:
        return evolve_iceberg(self._load, schema, self.name)

    def _create(self, schema: Any, partition_by: Sequence[str], properties: Mapping[str, str]) -> Any:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
        from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform

        transforms: dict[TimeUnit | None, Any] = {
            TimeUnit.DAY: DayTransform(),
            TimeUnit.HOUR: HourTransform(),
            None: IdentityTransform(),
        }
        self._catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
        try:
            transaction = self._catalog.create_table_transaction(
                self.name, schema, properties={**_NEW_TABLE, **properties}
            )
            fields = iceberg_fields(partition_by)
            if fields:
                with transaction.update_spec() as spec:
                    for source, unit, name in fields:
                        spec.add_field(source, transforms[unit], name)
            return transaction.commit_transaction()
        except (TableAlreadyExistsError, CommitFailedException):
            return self._catalog.load_table(self.name)  # another export has created it at the same time

    def _check_schema(self, table: Any, schema: Any) -> None:
        from pyiceberg.io.pyarrow import _check_pyarrow_schema_compatible

        try:
            _check_pyarrow_schema_compatible(table.schema(), schema, format_version=table.format_version)
        except (TypeError, ValueError) as error:
            raise JobError(f"table {self.name} cannot take these rows: {' '.join(str(error).split())}") from None

    def _check_partitions(self, table: Any, partition_by: Sequence[str]) -> tuple[str, ...]:
        """Return the columns to write files by, which follow from the table's partition spec."""
        there: list[tuple[str, TimeUnit | None]] = []
        for field in table.spec().fields:
            source, transform = table.schema().find_column_name(field.source_id), str(field.transform)
            if transform in ("day", "hour") and source == "timestamp":
                there.append((source, TimeUnit(transform)))
            elif transform == "identity":
                there.append((source, None))
            else:
                raise JobError(
                    f"table {self.name} is partitioned by {transform}({source}); an export can write tables that are "
                    "partitioned by columns, or by day or hour of timestamp"
                )
        wanted = [(source, unit) for source, unit, _ in iceberg_fields(partition_by)]
        if partition_by and wanted != there:
            raise JobError(f"table {self.name} exists and is not partitioned by {','.join(partition_by)}")
        return file_columns(there)

    def properties(self) -> Mapping[str, str] | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            found: Mapping[str, str] = self._catalog.load_table(self.name).properties
        except NoSuchTableError:
            return None
        except Exception as error:
            raise JobError(f"table {self.name} cannot be loaded: {first_sentence(error)}") from error
        return found

    def schema(self) -> Any:
        return iceberg_schema(self._load())

    def layout(self, round_id: str, *, target_bytes: int, compression: str) -> FileLayout:
        return FileLayout(
            self.storage,
            f"data/{round_id}",
            self._partition_by,
            target_bytes=target_bytes,
            compression=compression,
        )

    # Commits

    def ends(self, partitions: Iterable[TopicPartition]) -> TableEnds:
        return snapshot_ends(self._load())

    def add(self, round_: Round, files: Sequence[DataFile]) -> None:
        def stage(table: Any, transaction: Any) -> None:
            transaction.add_files(
                [f"{self.storage.location}/{file.path}" for file in files],
                snapshot_properties=_stage_ends(table, transaction, round_),
                check_duplicate_files=False,
            )

        self._commit(round_.id, stage, lambda table: round_.check_follows(self.name, snapshot_ends(table)))

    def stored_files(self) -> dict[int, list[StoredFile]]:
        table, found = self._load(), dict[int, list[StoredFile]]()
        for task in table.scan().plan_files():
            rows = rows_of(table, [task], self.storage.properties)
            found.setdefault(task.file.partition[0], []).append(StoredFile(task, task.file.partition[0], rows))
        return found

    def replace(self, round_: Round, replaced: Sequence[StoredFile], files: Sequence[DataFile]) -> None:
        removed = [file.handle for file in replaced]

        def check(table: Any) -> None:
            round_.check_follows(self.name, snapshot_ends(table))
            check_unchanged(table, removed)

        def stage(table: Any, transaction: Any) -> None:
            summary = _stage_ends(table, transaction, round_)
            stage_replacement(table, transaction, removed, files, self.storage.location, summary)

        self._commit(round_.id, stage, check)

    def names_folder(self, round_id: str) -> bool:
        table = self._load()
        summaries = (one.summary.additional_properties for one in table.metadata.snapshots if one.summary is not None)
        if any(found.get(COMMIT) == round_id for found in summaries):
            return True
        prefix = f"{self.storage.location}/data/{round_id}/"
        return any(task.file.file_path.startswith(prefix) for task in table.scan().plan_files())

    def _commit(self, commit_id: str, stage: Callable[[Any, Any], None], check: Callable[[Any], None]) -> None:
        """Commit what `stage` prepares, on a snapshot that passed `check`. Repeat after conflicts and lost answers."""
        from pyiceberg.exceptions import CommitFailedException

        problem: Exception | None = None
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(min(5.0, _PAUSE_S * 2**attempt) * random.uniform(0.5, 1.0))
            try:
                table = self._catalog.load_table(self.name)
            except Exception as error:
                problem = error
                continue
            if any(found.get(COMMIT) == commit_id for found in _commits(table)[0]):
                return  # an earlier attempt succeeded, but its answer was lost
            check(table)
            transaction = _without_retries(table).transaction()
            _tried(lambda: stage(table, transaction), f"a commit to table {self.name} cannot be prepared")  # noqa: B023
            try:
                transaction.commit_transaction()
                return
            except CommitFailedException as error:
                problem = error  # another program has committed first
            except Exception as error:
                problem = error  # the outcome is unknown; the next look at the table shows it
        assert problem is not None
        raise CommitUnknown(
            f"table {self.name} cannot be committed to ({ATTEMPTS} attempts): {first_sentence(problem)}; "
            "run the export again: it continues where the table ends",
            is_transient=can_heal(problem),
        ) from problem

    # Maintenance

    def merge(self, spark: Any, *, target_bytes: int, compression: str) -> Merged:
        table, markers = self._load(), MergeMarkers(self.storage)
        # The markers are swept by the state of the table before this merge.
        markers.sweep({task.file.file_path for task in table.scan().plan_files()}, self.names_folder)
        merge = IcebergMerge(table, self.storage, self._partition_by, target_bytes, compression)
        found = merge.run(spark)
        if found is None:
            return Merged()

        def stage(table: Any, transaction: Any) -> None:
            properties = {COMMIT: found.id, **to_properties(snapshot_ends(table))}
            stage_replacement(table, transaction, found.removed, found.added, self.storage.location, properties)

        try:
            self._commit(found.id, stage, lambda table: check_unchanged(table, found.removed))
        except ConcurrentChange:
            markers.delete(found.id, with_files=True)
            raise
        markers.delete(found.id, with_files=False)
        return Merged(len(found.removed), len(found.added))

    def expire(self, older_than_ms: int) -> Expired:
        what = f"snapshots of table {self.name} cannot be expired"
        found: Expired = _tried(lambda: expire_snapshots(self._load(), older_than_ms), what)
        return found


def _load_catalog(name: str | None, properties: dict[str, str]) -> Any:
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise JobError("Iceberg tables need pyiceberg: pip install 'tailrace[iceberg]'") from None
    what = f"catalog {name or 'default'} cannot be opened"
    try:
        return load_catalog(name, **properties)
    except ValueError as error:  # pyiceberg knows nothing about the catalog
        remedy = "give --catalog-property type=… and uri=…, or put the catalog into .pyiceberg.yaml and name it"
        raise JobError(f"{what}: {first_sentence(error)}; {remedy} with --catalog") from error
    except Exception:
        time.sleep(_PAUSE_S)  # two programs may have created the tables of a new SQL catalog at the same time
        return _tried(lambda: load_catalog(name, **properties), what)


def _without_retries(table: Any) -> Any:
    """Return the table such that pyiceberg does not repeat a commit. The property is not written to the table."""
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _commits(table: Any) -> tuple[list[dict[str, str]], bool]:
    """Return the properties of the current snapshot and its ancestors, and True if some of them have expired."""
    found, snapshot, oldest = [], table.current_snapshot(), None
    while snapshot is not None:
        found.append({} if snapshot.summary is None else snapshot.summary.additional_properties)
        oldest, parent = snapshot, snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)
    # pyiceberg removes the parent from a snapshot whose parent expires. The first snapshot of a table has number 1.
    return found, oldest is not None and (oldest.parent_snapshot_id is not None or oldest.sequence_number != 1)


def snapshot_ends(table: Any) -> TableEnds:
    """Return the ends. Those in the table's properties are of the last commit, so a rollback makes them invalid."""
    found, is_interrupted = _commits(table)
    ends = read_properties(found)
    if not is_interrupted:
        return ends
    own = {name: text for name, text in table.properties.items() if name.startswith(PREFIX)}
    for topic, known in read_properties([own]).topics.items():
        if topic in ends.topics:
            continue
        if json.loads(own[f"{PREFIX}{topic}"]).get(_SEQUENCE, 0) > (table.current_snapshot().sequence_number or 0):
            raise JobError(
                f"table {'.'.join(table.name())} was rolled back to a snapshot before its last export of {topic}, and "
                "earlier snapshots have expired: it is unknown where the table ends; export into another table"
            )
        ends.topics[topic] = known
    return ends


def _stage_ends(table: Any, transaction: Any, round_: Round) -> dict[str, str]:
    """Put the ends after a round into the table's properties. Return the properties of its snapshot."""
    properties = to_properties(round_.ends_after(snapshot_ends(table)))
    transaction.set_properties(_with_sequence(properties, table.metadata.last_sequence_number + 1))
    return {COMMIT: round_.id, **properties}


def _with_sequence(properties: Mapping[str, str], number: int) -> dict[str, str]:
    """Add the sequence number of the snapshot to ends for the table's properties."""
    return {name: json.dumps({**json.loads(text), _SEQUENCE: number}) for name, text in properties.items()}


def _tried(work: Callable[[], Any], what: str) -> Any:
    """Run `work`. Raise errors of pyiceberg and of its catalogs, which have no common class, as JobErrors."""
    try:
        return work()
    except JobError:
        raise
    except Exception as error:
        raise JobError(f"{what}: {first_sentence(error)}", is_transient=can_heal(error)) from error
