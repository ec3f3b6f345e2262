"""check_unchanged: a commit that replaces files notices every change of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.spark.tables.formats.iceberg_files import check_unchanged
from tailrace.spark.tables.table_ends import ConcurrentChange


def scan_task(path: str, *delete_paths: str) -> Any:
    deletes = [SimpleNamespace(file_path=one) for one in delete_paths]
    return SimpleNamespace(file=SimpleNamespace(file_path=path), delete_files=deletes)


def table(*tasks: Any) -> Any:
    return SimpleNamespace(scan=lambda: SimpleNamespace(plan_files=lambda: list(tasks)))


def test_a_table_with_the_same_files_and_deletes_is_unchanged() -> None:
    now = table(scan_task("a", "d2", "d1"), scan_task("b"), scan_task("c", "d9"))
    check_unchanged(now, [scan_task("a", "d1", "d2"), scan_task("b")])


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(table(scan_task("b")), id="the file is gone"),
        pytest.param(table(scan_task("a", "d1", "d2")), id="a delete file was added"),
        pytest.param(table(scan_task("a", "d2")), id="a delete file was replaced, as a deletion vector is"),
    ],
)
def test_a_changed_file_is_refused(now: Any) -> None:
    with pytest.raises(ConcurrentChange):
        check_unchanged(now, [scan_task("a", "d1")])
