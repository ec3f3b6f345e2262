"""Tables with one row for each key have the rows of a compacted topic."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.latest.latest_rounds import LatestRounds
from tailrace.spark.tables.table_ends import ConcurrentChange
from tailrace.spark.typed.typed_rows import TypedRows
from tailrace.spark.typed.value_format import ValueFormat
from tests.support.exported_tables import FORMATS, data_files, export, named_files, opened, rows
from tests.support.filled_topics import numbered, put

pytestmark = pytest.mark.parametrize("form", FORMATS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        yield broker


def random_records(dice: random.Random, count: int) -> list[tuple[bytes, bytes | None]]:
    """Return records of few keys; one in four deletes its key."""
    return [
        (b"k%d" % dice.randrange(25), None if dice.random() < 0.25 else b"v%d" % dice.randrange(10**6))
        for _ in range(count)
    ]


def found_values(form: str, folder: Path) -> dict[tuple[int, bytes], tuple[int, bytes]]:
    found = rows(form, folder)
    result = {(row["partition"], row["key"]): (row["offset"], row["value"]) for row in found}
    assert len(result) == len(found)  # one row for each key
    return result


@pytest.mark.parametrize("round_bytes", [2**30, 8 * 1024])
def test_each_key_has_its_newest_value(form: str, round_bytes: int, broker: tailrace.Broker, tmp_path: Path) -> None:
    dice, expected = random.Random(5), {}
    ends = [0, 0]
    for number in (0, 1, 0, 0, 1):
        records = random_records(dice, 40)
        put(broker.bootstrap, "t", number, records)
        for key, value in records:
            expected[number, key] = (ends[number], value)
            ends[number] += 1
        out = tmp_path / "out"
        export(form, out, broker.bootstrap, latest=True, buckets=4, round_bytes=round_bytes)
        assert found_values(form, out) == {key: one for key, one in expected.items() if one[1] is not None}
        assert {row["_bucket"] for row in rows(form, out)} <= set(range(4))
    assert named_files(form, out) <= data_files(form, out)


def test_a_round_without_changes_of_a_bucket_leaves_its_files(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    put(broker.bootstrap, "t", 0, numbered(50))
    export(form, tmp_path, broker.bootstrap, latest=True)
    before = named_files(form, tmp_path)
    put(broker.bootstrap, "t", 0, [(b"key 0", b"new")])
    assert export(form, tmp_path, broker.bootstrap, latest=True).records == 1
    after = named_files(form, tmp_path)
    assert (len(before - after), len(after - before)) == (1, 1)
    assert found_values(form, tmp_path)[0, b"key 0"] == (50, b"new")
    put(broker.bootstrap, "t", 0, [(b"key %d" % n, None) for n in range(50)])
    export(form, tmp_path, broker.bootstrap, latest=True)
    assert rows(form, tmp_path) == []


def test_old_rows_keep_their_values_when_the_schema_grows(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    def add(columns: str, *values: tuple[bytes, bytes]) -> None:
        put(broker.bootstrap, "t", 0, values)
        typed = TypedRows(ValueFormat("json", columns.encode()))
        export(form, tmp_path, broker.bootstrap, latest=True, buckets=1, form=typed)

    add("id BIGINT, total DOUBLE", (b"a", b'{"id": 1, "total": 2.5}'), (b"b", b'{"id": 2, "total": 3.5}'))
    add("id BIGINT, total DOUBLE, note STRING", (b"b", b'{"id": 2, "total": 4.5, "note": "x"}'))
    add("id BIGINT", (b"c", b'{"id": 3}'))
    assert [(row["key"], row["id"], row["total"], row["note"]) for row in rows(form, tmp_path)] == [
        (b"a", 1, 2.5, None),
        (b"b", 2, 4.5, "x"),
        (b"c", 3, None, None),
    ]


def test_a_record_without_key_is_refused(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put(broker.bootstrap, "t", 1, [(b"k", b"v"), (None, b"v")])
    with pytest.raises(
        JobError, match="the record at offset 1 of t-1 has no key: --latest needs a key in every record"
    ):
        export(form, tmp_path, broker.bootstrap, latest=True)
    assert rows(form, tmp_path) == []


def test_a_table_keeps_its_kind_and_its_number_of_buckets(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    export(form, tmp_path / "latest", broker.bootstrap, latest=True, buckets=3)
    with pytest.raises(JobError, match="has one row for each key"):
        export(form, tmp_path / "latest", broker.bootstrap)
    with pytest.raises(JobError, match="has 3 buckets, and their number cannot be changed"):
        export(form, tmp_path / "latest", broker.bootstrap, latest=True, buckets=4)
    assert export(form, tmp_path / "latest", broker.bootstrap, latest=True, buckets=3).records == 0
    export(form, tmp_path / "all", broker.bootstrap)
    with pytest.raises(JobError, match="all records"):
        export(form, tmp_path / "all", broker.bootstrap, latest=True)


def test_a_round_is_repeated_if_another_program_has_changed_its_files(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    export(form, tmp_path, broker.bootstrap, latest=True, buckets=1)
    put(broker.bootstrap, "t", 0, [(b"key 0", b"new")])
    attempts: list[str] = []

    def replace(self: Table, round_: Any, replaced: Any, files: Any) -> None:
        if not attempts:
            delete_key(form, tmp_path, b"key 1")
        attempts.append(round_.id)
        try:
            original(self, round_, replaced, files)
        except ConcurrentChange:
            attempts.append("overtaken")
            raise

    kind = type(opened(form, tmp_path))
    original = kind.replace
    monkeypatch.setattr(kind, "replace", replace)
    export(form, tmp_path, broker.bootstrap, latest=True)
    assert attempts[1] == "overtaken"
    assert sorted(key for _, key in found_values(form, tmp_path)) == [b"key 0", b"key 2", b"key 3", b"key 4"]


def delete_key(form: str, folder: Path, key: bytes) -> None:
    """Delete the row of a key with the format's own library, as another program would."""
    if form == "iceberg":
        from pyiceberg.catalog import load_catalog
        from pyiceberg.expressions import EqualTo

        from tests.support.exported_tables import NAME, catalog_properties

        load_catalog("test", **catalog_properties(folder)).load_table(NAME).delete(EqualTo("key", key))
        return
    import deltalake

    deltalake.DeltaTable(folder / "delta").delete(f"cast(key as string) = '{key.decode()}'")


def test_too_many_buckets_are_refused(form: str) -> None:
    with pytest.raises(JobError, match="at most 4,096 buckets"):
        LatestRounds(5_000)
