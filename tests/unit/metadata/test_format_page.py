"""docs/reference/formats/metadata_log.md: its example is run, and makes the files that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "formats" / "metadata_log.md"
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_files_that_the_page_shows_are_those_that_its_example_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text())
    for language, _, content in blocks:
        if language == "python":
            exec(compile(content, PAGE.name, "exec"), {})
    shown = [(language, name, content) for language, name, content in blocks if name]
    assert len(shown) == 3
    for language, name, content in shown:
        data = (tmp_path / "demo" / name).read_bytes()
        if language == "hex":
            expected = bytes.fromhex(" ".join(line.partition("|")[0] for line in content.splitlines()))
            assert data.hex(" ") == expected.hex(" "), name
        else:
            assert data.decode().splitlines() == content.splitlines(), name


def test_the_source_files_that_the_page_names_are_there() -> None:
    source = PAGE.parents[3] / "src" / "tailrace"
    named = re.findall(r"`(metadata/[\w/]+\.py)`", PAGE.read_text())
    assert named
    assert [name for name in named if not (source / name).exists()] == []
