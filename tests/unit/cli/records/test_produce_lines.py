from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

import pytest

from tailrace.cli.errors import CommandError
from tailrace.cli.records.produce_lines import CHUNK_BYTES, NewRecord, line_groups, line_reader


def read(line: str | bytes, **options: Any) -> NewRecord:
    given = {
        "header": [], "headers": False, "key_separator": None, "null": None,
        "json": False, "encoding": "utf8", "repartition": False, **options,
    }  # fmt: skip
    return line_reader(Namespace(**given))(line.encode() if isinstance(line, str) else line)


def read_json(line: str, **options: Any) -> NewRecord:
    return read(line, json=True, **options)


# --------------------------------------------------------------------------------------------------------- plain lines


def test_a_line_is_a_value() -> None:
    assert read("a:b") == NewRecord(None, b"a:b")
    assert read(b"\xff\xfe") == NewRecord(None, b"\xff\xfe")
    assert read("") == NewRecord(None, b"")


def test_a_key_stands_before_the_first_separator() -> None:
    assert read("k:v:w", key_separator=":") == NewRecord(b"k", b"v:w")
    assert read("k\tv", key_separator="\\t") == NewRecord(b"k", b"v")
    assert read(":v", key_separator=":") == NewRecord(b"", b"v")
    assert read("k=>v", key_separator="=>") == NewRecord(b"k", b"v")
    with pytest.raises(ValueError, match="no ':' parts"):
        read("kv", key_separator=":")
    with pytest.raises(CommandError, match="must not be empty"):
        read("kv", key_separator="")


def test_what_stands_for_null() -> None:
    assert read("k:NULL", key_separator=":", null="NULL") == NewRecord(b"k", None)
    assert read("NULL:v", key_separator=":", null="NULL") == NewRecord(None, b"v")
    assert read("h:NULL\tNULL", headers=True, null="NULL") == NewRecord(None, None, (("h", None),))


def test_headers_stand_before_a_tab() -> None:
    assert read("a:1,b:x:y\tk=v", headers=True, key_separator="=") == NewRecord(
        b"k", b"v", (("a", b"1"), ("b", b"x:y"))
    )
    assert read("\tv", headers=True) == NewRecord(None, b"v")
    with pytest.raises(ValueError, match="no tab"):
        read("a:1", headers=True)
    with pytest.raises(ValueError, match="'a' is no header"):
        read("a\tv", headers=True)
    with pytest.raises(ValueError, match="not UTF-8"):
        read(b"\xff:1\tv", headers=True)


def test_headers_for_all() -> None:
    assert read("a:1\tv", headers=True, header=["x=y=z", "e="]).headers == (("a", b"1"), ("x", b"y=z"), ("e", b""))
    assert read_json('{"value":"v"}', header=["x=y"]).headers == (("x", b"y"),)
    with pytest.raises(CommandError, match="NAME=VALUE"):
        read("v", header=["x"])


# ---------------------------------------------------------------------------------------------------------------- JSON


def test_json_as_consume_prints_it() -> None:
    line = (
        '{"topic":"t","partition":2,"offset":5,"timestamp":7,"key":"k","value":"/w==","valueEncoding":"base64",'
        '"headers":[{"key":"h","value":null},{"key":"i","value":"ff","valueEncoding":"hex"}],"sequence":3}'
    )
    assert read_json(line) == NewRecord(b"k", b"\xff", (("h", None), ("i", b"\xff")), 7, 2)
    assert read_json(line, repartition=True).partition is None


def test_json_that_is_short() -> None:
    assert read_json('{"value":"v"}') == NewRecord(None, b"v")
    assert read_json('{"value":null,"key":"k"}') == NewRecord(b"k", None)
    assert read_json('{"value":{"a":[1,"ü"]},"key":17}') == NewRecord(b"17", '{"a":[1,"ü"]}'.encode())
    assert read_json('{"value":"v","headers":{"a":"1","b":null}}').headers == (("a", b"1"), ("b", None))
    assert read_json('{"value":"v","timestamp":"2023-11-14T22:13:20Z"}').timestamp == 1_700_000_000_000


def test_an_encoding_for_all() -> None:
    assert read_json('{"value":"ff","key":"00"}', encoding="hex") == NewRecord(b"\0", b"\xff")
    assert read_json('{"value":"v","valueEncoding":"utf8"}', encoding="hex") == NewRecord(None, b"v")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "no JSON"),
        ("[1]", "no JSON object"),
        ('{"vale":"x"}', "'vale' is no field"),
        ('{"key":"x"}', "has no value"),
        ('{"value":"x","valueEncoding":"base64"}', "its value is not base64"),
        ('{"value":"x","valueEncoding":"rot13"}', "no encoding 'rot13'"),
        ('{"value":"x","keyEncoding":"hex","key":"xy"}', "its key is not hex"),
        ('{"value":"x","timestamp":"soon"}', "its timestamp: 'soon'"),
        ('{"value":"x","partition":-1}', "-1 is no partition"),
        ('{"value":"x","partition":"1"}', "'1' is no partition"),
        ('{"value":"x","partition":true}', "True is no partition"),
        ('{"value":"x","headers":["h"]}', "a header is written"),
    ],
)
def test_json_that_is_no_record(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_json(line)


# -------------------------------------------------------------------------------------------------- lines as they come


def groups(*chunks: bytes) -> list[tuple[list[bytes], bool]]:
    """What is read of a pipe into which these were written, each after the one before was read."""
    read_end, write_end = os.pipe()
    found = []
    waiting = list(chunks)
    try:
        os.write(write_end, waiting.pop(0))
        for lines, nothing_more in line_groups(read_end):
            found.append((lines, nothing_more))
            if waiting:
                os.write(write_end, waiting.pop(0))
            elif write_end >= 0:
                os.close(write_end)
                write_end = -1
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)
    return found


def test_lines_come_as_they_are_written() -> None:
    assert groups(b"a\nb\n", b"c\r\n") == [([b"a", b"b"], True), ([b"c"], True)]
    assert groups(b"a\nb", b"c\n") == [([b"a"], True), ([b"bc"], True)]
    assert groups(b"a\nrest") == [([b"a"], True), ([b"rest"], False)]
    assert groups(b"\n\n") == [([b"", b""], True)]


def test_a_file_is_read_in_large_pieces(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    lines = [b"%d" % number * 10 for number in range(20_000)]
    path.write_bytes(b"\n".join(lines))
    with path.open("rb") as file:
        found = list(line_groups(file.fileno()))
    assert [line for group, _ in found for line in group] == lines
    assert not any(nothing_more for _, nothing_more in found)
    assert len(found) < path.stat().st_size / CHUNK_BYTES + 2


def test_a_line_longer_than_a_piece(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (3 * CHUNK_BYTES) + b"\ny\n")
    with path.open("rb") as file:
        found = [line for group, _ in line_groups(file.fileno()) for line in group]
    assert found == [b"x" * (3 * CHUNK_BYTES), b"y"]
