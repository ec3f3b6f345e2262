"""docs/reference/glossary.md names code that exists, and each word once per table."""

from __future__ import annotations

import re

from tests.support.doc_page import ROOT

PAGE = ROOT / "docs" / "reference" / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, list[str]]]:
    """Return the words with the paths of their code; a name such as `Broker.tick` is not a path."""
    return [
        (word.strip(), [name for name in re.findall(r"`([^`]+)`", code) if "/" in name])
        for word, _, code in ROW.findall(PAGE.read_text())
        if word.strip() not in ("Word", "---")
    ]


def test_every_word_names_code_that_exists() -> None:
    missing = [
        f"{word}: {path}"
        for word, paths in rows()
        for path in paths
        if not (ROOT / "src" / "tailrace" / path).exists() and not (ROOT / path).exists()
    ]
    assert len(rows()) > 50
    assert missing == []


def test_every_word_has_one_row() -> None:
    words = [word for word, _ in rows()]
    assert sorted(set(words)) == sorted(words)
