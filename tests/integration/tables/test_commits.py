"""A commit of an export adds records once: with other writers, lost answers, rollbacks, and after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.admin import delete_records
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables import round_writer
from tailrace.spark.tables.formats import delta, iceberg
from tailrace.spark.tables.row_form import RECORD_SCHEMA
from tailrace.spark.tables.table_export import Exported, ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.exported_tables import FORMATS, data_files, export, named_files, offsets, opened, rows
from tests.support.filled_topics import numbered, put
from tests.support.inline_spark import InlineSpark

pytestmark = pytest.mark.parametrize("form", FORMATS)


class Killed(BaseException):
    """The process dies here: nothing handles it."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(10))
        put(broker.bootstrap, "t", 1, numbered(4))
        yield broker


ALL = [(0, n) for n in range(10)] + [(1, n) for n in range(4)]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (iceberg, delta):
        monkeypatch.setattr(module, "_PAUSE_S", 0.001)


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], *, times: int = 1) -> None:
    """Call `act` when files are written, before the commit."""
    calls = iter(range(times))
    real = round_writer.run_tasks

    def run_tasks(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        if next(calls, None) is not None:
            act()
        return found

    monkeypatch.setattr(round_writer, "run_tasks", run_tasks)


def test_two_exports_at_the_same_time_add_each_record_once(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other: list[Exported] = []
    before_commit(monkeypatch, lambda: other.append(export(form, tmp_path, broker.bootstrap)))
    first = export(form, tmp_path, broker.bootstrap)
    assert (first.records, other[0].records) == (0, 14)
    assert offsets(form, tmp_path) == ALL
    assert data_files(form, tmp_path) == named_files(form, tmp_path)


def test_two_exports_that_create_the_table_add_each_record_once(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import deltalake
    from pyiceberg.catalog.sql import SqlCatalog

    owner, name = (SqlCatalog, "create_table_transaction") if form == "iceberg" else (deltalake.DeltaTable, "create")
    real = getattr(owner, name)
    other: list[Exported] = []

    def create(*args: Any, **kwargs: Any) -> Any:
        if not other:
            monkeypatch.setattr(owner, name, real)
            other.append(export(form, tmp_path, broker.bootstrap))
        return real(*args, **kwargs)

    def staged(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        create(*args, **kwargs)
        return found

    monkeypatch.setattr(owner, name, staged if form == "iceberg" else create)
    first = export(form, tmp_path, broker.bootstrap)
    assert (first.records, other[0].records) == (0, 14)
    assert offsets(form, tmp_path) == ALL


def test_an_export_overtaken_by_another_continues_after_its_records(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtake() -> None:
        put(broker.bootstrap, "t", 0, numbered(5))
        export(form, tmp_path, broker.bootstrap, ["t"])
        put(broker.bootstrap, "t", 0, numbered(5))

    before_commit(monkeypatch, overtake)
    export(form, tmp_path, broker.bootstrap)
    assert export(form, tmp_path, broker.bootstrap).records == 5
    assert offsets(form, tmp_path) == [(0, n) for n in range(20)] + [(1, n) for n in range(4)]


def test_a_commit_of_another_topic_does_not_stop_an_export(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("u")
    put(broker.bootstrap, "u", 0, numbered(3))
    before_commit(monkeypatch, lambda: export(form, tmp_path, broker.bootstrap, ["u"]))
    assert export(form, tmp_path, broker.bootstrap).records == 14
    assert len(rows(form, tmp_path)) == 17


def conflict_in_commit(form: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Call `act` once between the check of the ends and the commit."""
    calls = iter([1])
    if form == "iceberg":
        from pyiceberg.table import Transaction

        real = Transaction.commit_transaction

        def commit(transaction: Any) -> Any:
            if transaction._snapshot_producers and next(calls, None):
                act()
            return real(transaction)

        monkeypatch.setattr(Transaction, "commit_transaction", commit)
        return
    from deltalake import DeltaTable

    write = DeltaTable.create_write_transaction

    def create(table: Any, *args: Any, **kwargs: Any) -> Any:
        if next(calls, None):
            act()
        return write(table, *args, **kwargs)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", create)


def test_a_conflicting_commit_after_the_check_is_detected(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflict_in_commit(form, monkeypatch, lambda: export(form, tmp_path, broker.bootstrap))
    assert export(form, tmp_path, broker.bootstrap).records == 0
    assert offsets(form, tmp_path) == ALL
    assert data_files(form, tmp_path) == named_files(form, tmp_path)


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_after_a_lost_response_to_a_commit_the_table_is_read_again(
    is_carried_out: bool, form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter([1])

    def losing(real: Callable[..., Any]) -> Callable[..., Any]:
        def commit(*args: Any, **kwargs: Any) -> Any:
            is_first = next(calls, None) is not None
            found = real(*args, **kwargs) if is_carried_out or not is_first else None
            if is_first:
                raise ConnectionResetError("the answer was lost")
            return found

        return commit

    if form == "iceberg":
        from pyiceberg.catalog.sql import SqlCatalog

        opened(form, tmp_path).open(RECORD_SCHEMA, ())
        monkeypatch.setattr(SqlCatalog, "commit_table", losing(SqlCatalog.commit_table))
    else:
        from deltalake import DeltaTable

        monkeypatch.setattr(DeltaTable, "create_write_transaction", losing(DeltaTable.create_write_transaction))
    assert export(form, tmp_path, broker.bootstrap).records == 14
    assert next(calls, None) is None
    assert offsets(form, tmp_path) == ALL
    assert data_files(form, tmp_path) == named_files(form, tmp_path)


def test_files_of_a_killed_run_are_deleted_by_the_next(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die() -> None:
        raise Killed

    before_commit(monkeypatch, die)
    with pytest.raises(Killed):
        export(form, tmp_path, broker.bootstrap)
    orphans = data_files(form, tmp_path)
    assert orphans
    assert export(form, tmp_path, broker.bootstrap).records == 14
    assert data_files(form, tmp_path) == named_files(form, tmp_path)
    assert not orphans & data_files(form, tmp_path)


def test_a_run_that_was_killed_after_its_commit_keeps_its_files(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("tailrace.spark.tables.round_files.RoundFiles.end", die)
        with pytest.raises(Killed):
            export(form, tmp_path, broker.bootstrap)
    put(broker.bootstrap, "t", 0, numbered(1))
    assert export(form, tmp_path, broker.bootstrap).records == 1
    assert len(rows(form, tmp_path)) == 15
    assert data_files(form, tmp_path) == named_files(form, tmp_path)
    assert not list(tmp_path.rglob("_tailrace/*.json"))


def test_records_deleted_before_an_export_are_an_error_or_counted_as_lost(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    export(form, tmp_path, broker.bootstrap)
    put(broker.bootstrap, "t", 0, numbered(10))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_records(cluster, {TopicPartition("t", 0): 17})
    with pytest.raises(
        JobError, match=r"offsets 10 to 16 of t-0 were deleted before they were exported .* --allow-loss"
    ):
        export(form, tmp_path, broker.bootstrap)
    found = export(form, tmp_path, broker.bootstrap, allow_loss=True)
    assert (found.records, found.lost) == (3, 7)
    assert export(form, tmp_path, broker.bootstrap).lost == 0
    assert offsets(form, tmp_path) == [*ALL[:10], (0, 17), (0, 18), (0, 19), *ALL[10:]]


def test_records_deleted_during_a_round_are_an_error_or_counted_as_lost(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = round_writer.write_tasks

    def write_tasks(*args: Any, **kwargs: Any) -> Any:
        with ClusterClient(broker.bootstrap) as cluster:
            delete_records(cluster, {TopicPartition("t", 0): 6})
        return real(*args, **kwargs)

    monkeypatch.setattr(round_writer, "write_tasks", write_tasks)
    # The table has the topic, so its records are expected from offset 0 on.
    export(form, tmp_path, broker.bootstrap, ["t"], allow_loss=True)
    assert offsets(form, tmp_path) == [(0, n) for n in range(6, 10)] + ALL[10:]


def test_a_restored_delta_table_is_refused(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    if form == "iceberg":
        pytest.skip("a rollback of Iceberg is exported again")
    import deltalake

    export(form, tmp_path, broker.bootstrap)
    put(broker.bootstrap, "t", 0, numbered(5))
    export(form, tmp_path, broker.bootstrap)
    deltalake.DeltaTable(tmp_path / "delta").restore(1)
    with pytest.raises(JobError, match="was restored to an older version after its last export"):
        export(form, tmp_path, broker.bootstrap)


def test_a_rollback_is_exported_again(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    if form == "delta":
        pytest.skip("a restore of delta-rs keeps the txn actions")
    from pyiceberg.catalog import load_catalog

    from tests.support.exported_tables import NAME, catalog_properties

    export(form, tmp_path, broker.bootstrap)
    table = load_catalog("test", **catalog_properties(tmp_path)).load_table(NAME)
    first = table.current_snapshot().snapshot_id
    put(broker.bootstrap, "t", 0, numbered(5))
    export(form, tmp_path, broker.bootstrap)
    table.refresh().manage_snapshots().rollback_to_snapshot(first).commit()
    assert len(rows(form, tmp_path)) == 14
    assert export(form, tmp_path, broker.bootstrap).records == 5
    assert len(rows(form, tmp_path)) == 19


def test_an_export_resumes_after_foreign_commits_and_expired_snapshots(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    export(form, tmp_path, broker.bootstrap)
    if form == "iceberg":
        from pyiceberg.catalog import load_catalog

        from tests.support.exported_tables import NAME, catalog_properties

        table = load_catalog("test", **catalog_properties(tmp_path)).load_table(NAME)
        ours = table.current_snapshot().snapshot_id
        table.delete("offset = 3")
        table.maintenance.expire_snapshots().by_id(ours).commit()
    else:
        import deltalake

        table = deltalake.DeltaTable(tmp_path / "delta")
        table.delete("offset = 3")
        table.create_checkpoint()
        table.cleanup_metadata()
    assert export(form, tmp_path, broker.bootstrap).records == 0
    assert len(rows(form, tmp_path)) == 12


def test_a_rollback_behind_expired_snapshots_is_refused(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    if form == "delta":
        pytest.skip("a restore of delta-rs keeps the txn actions")
    from pyiceberg.catalog import load_catalog

    from tests.support.exported_tables import NAME, catalog_properties

    export(form, tmp_path, broker.bootstrap)
    table = load_catalog("test", **catalog_properties(tmp_path)).load_table(NAME)
    first = table.current_snapshot().snapshot_id
    table.delete("offset = 3")
    foreign = table.current_snapshot().snapshot_id
    put(broker.bootstrap, "t", 0, numbered(5))
    export(form, tmp_path, broker.bootstrap)
    table.refresh().manage_snapshots().rollback_to_snapshot(foreign).commit()
    table.refresh().maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(JobError, match=r"table lake.events was rolled back .* unknown where the table ends"):
        export(form, tmp_path, broker.bootstrap)


def test_a_log_that_ends_before_the_table_is_refused(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    with TopicSource(Place.parse(broker.bootstrap), ["t"]) as source:
        job = TableExport(InlineSpark(), source, opened(form, tmp_path), ExportSettings())
        export_once(job)
        real = source.latest
        source.latest = lambda partitions: {one: end - 1 for one, end in real(partitions).items()}  # type: ignore[method-assign]
        with pytest.raises(JobError, match=r"t-0 ends at offset 9, but table .* has its records up to 10: the log has"):
            job.run_round()


def test_files_of_a_killed_merge_are_deleted_later(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        put(broker.bootstrap, "t", 0, numbered(3))
        export(form, tmp_path, broker.bootstrap)
    table = opened(form, tmp_path)
    table.open(RECORD_SCHEMA, ())
    if form == "delta":  # OPTIMIZE has no place to stop it
        (tmp_path / "delta" / "part-00000-of-a-killed-merge.zstd.parquet").write_bytes(b"PAR1")
    else:
        with monkeypatch.context() as patched:
            patched.setattr(iceberg.IcebergTable, "_commit", kill)
            with pytest.raises(Killed):
                table.merge(InlineSpark(), target_bytes=1 << 20, compression="zstd")
    orphans = data_files(form, tmp_path) - named_files(form, tmp_path)
    assert len(orphans) == 1
    assert table.merge(InlineSpark(), target_bytes=1 << 20, compression="zstd").files_after == 1
    assert table.merge(InlineSpark(), target_bytes=1 << 20, compression="zstd").files_after == 0
    if form == "delta":
        table.expire(4_000_000_000_000)
    assert not orphans & data_files(form, tmp_path)
    assert not list(tmp_path.rglob("_tailrace/**/*.json"))
    assert len(rows(form, tmp_path)) == 14 + 8 * 3


def kill(*_: object) -> None:
    raise Killed
