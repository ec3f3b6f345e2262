"""The pages of docs/reference/formats: examples run, the files they show are right, tables of fields add up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailrace.log.producers import producer_snapshot
from tailrace.log.segments.indexes import offset_index, time_index, transaction_index

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "formats"
NAMES = ["segment_files.md", "checkpoints.md", "producer_snapshot.md"]
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (\d+) \| (\d*) \|", re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Return (language, file name, content) of every fenced block."""
    return BLOCK.findall((PAGES / page).read_text())


def run_example(page: str) -> None:
    for language, _, content in blocks(page):
        if language == "python":
            exec(compile(content, page, "exec"), {})


def bytes_of(content: str) -> bytes:
    """Return the bytes of a hex block. Text after a bar is a remark."""
    return bytes.fromhex(" ".join(line.partition("|")[0] for line in content.splitlines()))


@pytest.mark.parametrize("page", NAMES)
def test_the_files_that_a_page_shows_are_those_that_its_example_makes(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_example(page)
    shown = [(language, name, content) for language, name, content in blocks(page) if name]
    assert shown
    for language, name, content in shown:
        data = (tmp_path / "demo" / name).read_bytes()
        if language == "hex":
            assert data.hex(" ") == bytes_of(content).hex(" "), name
        else:
            assert data.decode().splitlines() == content.splitlines(), name


def table_lengths(page: str) -> list[int]:
    """Return the length of the entry in each table of fields; every field must begin where the previous one ends."""
    lengths: list[int] = []
    for position, size in ROW.findall((PAGES / page).read_text()):
        if int(position) == 0:
            lengths.append(0)
        assert lengths[-1] == int(position)
        lengths[-1] += int(size or 0)
    return lengths


def test_the_tables_of_fields_are_as_long_as_the_entries() -> None:
    assert table_lengths("segment_files.md") == [
        offset_index._ENTRY.size,
        time_index._ENTRY.size,
        transaction_index._ENTRY.size,
    ]
    assert table_lengths("producer_snapshot.md") == [producer_snapshot._HEADER.size, producer_snapshot._ENTRY.size]


@pytest.mark.parametrize("page", NAMES)
def test_the_files_that_a_page_names_in_the_source_are_there(page: str) -> None:
    named = re.findall(r"`((?:log|records|tests)/[\w/]+\.py)`", (PAGES / page).read_text())
    assert named
    root = PAGES.parents[2]
    missing = [name for name in named if not ((root / "src" / "tailrace" / name).exists() or (root / name).exists())]
    assert missing == []
