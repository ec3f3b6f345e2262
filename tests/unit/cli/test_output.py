from __future__ import annotations

import io
import sys

import pytest

from tailrace.cli.output import count_text, json_line, print_lines, size_text, table, time_text, warn


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (1024 * 1024 - 1, "1.0 MB"),
        (1_500_000, "1.4 MB"),
        (2**40, "1.0 TB"),
        (2**63, "8192.0 PB"),
    ],
)
def test_sizes_are_printed_with_units(size: int, text: str) -> None:
    assert size_text(size) == text


def test_timestamps_are_printed_in_utc() -> None:
    assert time_text(1_700_000_000_007) == "2023-11-14 22:13:20.007"
    assert time_text(-1) == "-"
    assert time_text(2**63 - 1) == "9223372036854775807"


def test_count_text_uses_singular_and_plural() -> None:
    assert [count_text(1, "batch", "batches"), count_text(1200, "batch", "batches")] == ["1 batch", "1,200 batches"]
    assert count_text(0, "segment") == "0 segments"


def test_columns_of_a_table_are_aligned() -> None:
    assert table(["<NAME", "SIZE", "<NOTE"], [["a", 1, "x"], ["long name", None, ""], ["b", 12345, "yy"]]) == [
        "NAME        SIZE  NOTE",
        "a              1  x",
        "long name      -",
        "b          12345  yy",
    ]


def test_json_line_does_not_escape_unicode() -> None:
    assert json_line({"key": "höhe", "n": [1, None]}) == '{"key":"höhe","n":[1,null]}'


def test_text_outside_the_terminals_encoding_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    print_lines("1 → 2")
    sys.stdout.flush()
    assert raw.getvalue() == b"1 \\u2192 2\n"


def test_control_characters_in_a_table_are_escaped() -> None:
    lines = table(["<NAME"], [["\x1b[2Jorders\n\t\x9b\u202e"]])
    assert lines == ["NAME", r"\x1b[2Jorders\n\t\u009b\u202e"]


def test_control_characters_in_printed_lines_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines("a\x1b]0;title\x07\tb", json_line({"topic": "x\x9b\x1b"}))
    warn("no topic \x1b[31m")
    printed = capsys.readouterr()
    assert printed.out == "a\\x1b]0;title\\x07\tb\n" + '{"topic":"x\\u009b\\u001b"}\n'
    assert printed.err == "tailrace: no topic \\x1b[31m\n"
