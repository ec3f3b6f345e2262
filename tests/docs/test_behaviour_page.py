"""docs/reference/behaviour.md names modules and tests that exist, and has a row for every code in a test's name."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.support.doc_page import ROOT

PAGE = ROOT / "docs" / "reference" / "behaviour.md"
ROW = re.compile(r"^\| ([FLRS]\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


class Row(NamedTuple):
    code: str
    modules: list[str]
    tests: list[str]


def rows() -> list[Row]:
    return [
        Row(code, re.findall(r"`([^`]+)`", modules), re.findall(r"`([^`]+)`", tests))
        for code, _, modules, tests in ROW.findall(PAGE.read_text())
    ]


def test_every_code_has_one_row() -> None:
    numbers = {"F": 18, "L": 16, "R": 6, "S": 3}
    codes = [f"{letter}{number}" for letter, last in numbers.items() for number in range(1, last + 1)]
    assert [row.code for row in rows()] == codes


def test_every_row_names_modules_and_tests_that_exist() -> None:
    missing = [
        f"{row.code}: {path}"
        for row in rows()
        for path in [*(f"src/tailrace/{name}" for name in row.modules), *row.tests]
        if not (ROOT / path).exists()
    ]
    assert missing == []
    assert [row.code for row in rows() if not row.modules or not row.tests] == []


def test_a_code_in_the_name_of_a_test_has_a_row() -> None:
    codes = {row.code for row in rows()}
    named = {
        code.upper()
        for path in (ROOT / "tests").rglob("test_*.py")
        for code in re.findall(r"^def test_([flrs]\d+)_", path.read_text(), re.MULTILINE)
    }
    assert named - codes == set()


def test_each_row_names_a_file_whose_tests_carry_its_code() -> None:
    """This applies to rows whose code occurs in names of tests."""
    files: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for code in re.findall(r"^def test_([flrs]\d+)_", path.read_text(), re.MULTILINE):
            files.setdefault(code.upper(), set()).add(path.relative_to(ROOT).as_posix())
    unnamed = {
        row.code: files[row.code] for row in rows() if row.code in files and not files[row.code] & set(row.tests)
    }
    assert unnamed == {}
