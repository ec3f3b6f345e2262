"""Lines of properties files that Java and the parser read as the same values."""

from __future__ import annotations

import pytest

from tailrace.broker.config.properties_file import parse_properties, property_line


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain value ", "key=plain value \n"),
        ("  two blanks", "key=\\  two blanks\n"),
        ("\ttab", "key=\\ttab\n"),
        ("C:\\data", "key=C:\\\\data\n"),
        ("two\r\nlines", "key=two\\r\\nlines\n"),
        ("Zürich", "key=Z\\u00fcrich\n"),  # Java reads the file as ISO-8859-1
        ("😀", "key=\\ud83d\\ude00\n"),
        ("=#!:", "key==#!:\n"),
        ("", "key=\n"),
    ],
)
def test_a_written_value_is_ascii_and_is_read_as_it_was(value: str, line: str) -> None:
    assert property_line("key", value) == line
    assert parse_properties(line) == {"key": value}
