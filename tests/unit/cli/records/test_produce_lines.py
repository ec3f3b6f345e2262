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


def test_a_plain_line_is_the_value() -> None:
    assert read("a:b") == NewRecord(None, b"a:b")
    assert read(b"\xff\xfe") == NewRecord(None, b"\xff\xfe")
    assert read("") == NewRecord(None, b"")


def test_text_before_the_first_separator_is_the_key() -> None:
    assert read("k:v:w", key_separator=":") == NewRecord(b"k", b"v:w")
    assert read("k\tv", key_separator="\\t") == NewRecord(b"k", b"v")
    assert read(":v", key_separator=":") == NewRecord(b"", b"v")
    assert read("k=>v", key_separator="=>") == NewRecord(b"k", b"v")
    with pytest.raises(ValueError, match="no key separator ':'"):
        read("kv", key_separator=":")
    with pytest.raises(CommandError, match="must not be empty"):
        read("kv", key_separator="")


def test_the_null_text_becomes_a_null_key_value_or_header() -> None:
    assert read("k:NULL", key_separator=":", null="NULL") == NewRecord(b"k", None)
    assert read("NULL:v", key_separator=":", null="NULL") == NewRecord(None, b"v")
    assert read("h:NULL\tNULL", headers=True, null="NULL") == NewRecord(None, None, (("h", None),))


def test_text_before_the_tab_is_parsed_as_headers() -> None:
    assert read("a:1,b:x:y\tk=v", headers=True, key_separator="=") == NewRecord(
        b"k", b"v", (("a", b"1"), ("b", b"x:y"))
    )
    assert read("\tv", headers=True) == NewRecord(None, b"v")
    with pytest.raises(ValueError, match="no tab"):
        read("a:1", headers=True)
    with pytest.raises(ValueError, match="'a' is not a header"):
        read("a\tv", headers=True)
    with pytest.raises(ValueError, match="not UTF-8"):
        read(b"\xff:1\tv", headers=True)


def test_header_option_adds_its_headers_to_every_record() -> None:
    assert read("a:1\tv", headers=True, header=["x=y=z", "e="]).headers == (("a", b"1"), ("x", b"y=z"), ("e", b""))
    assert read_json('{"value":"v"}', header=["x=y"]).headers == (("x", b"y"),)
    with pytest.raises(CommandError, match="NAME=VALUE"):
        read("v", header=["x"])


# ---------------------------------------------------------------------------------------------------------------- JSON


def test_json_line_of_consume_becomes_the_same_record() -> None:
    line = (
        '{"topic":"t","partition":2,"offset":5,"timestamp":7,"key":"k","value":"/w==","valueEncoding":"base64",'
        '"headers":[{"key":"h","value":null},{"key":"i","value":"ff","valueEncoding":"hex"}],"sequence":3}'
    )
    assert read_json(line) == NewRecord(b"k", b"\xff", (("h", None), ("i", b"\xff")), 7, 2)
    assert read_json(line, repartition=True).partition is None


def test_json_line_may_omit_fields() -> None:
    assert read_json('{"value":"v"}') == NewRecord(None, b"v")
    assert read_json('{"value":null,"key":"k"}') == NewRecord(b"k", None)
    assert read_json('{"value":{"a":[1,"ü"]},"key":17}') == NewRecord(b"17", '{"a":[1,"ü"]}'.encode())
    assert read_json('{"value":"v","headers":{"a":"1","b":null}}').headers == (("a", b"1"), ("b", None))
    assert read_json('{"value":"v","timestamp":"2023-11-14T22:13:20Z"}').timestamp == 1_700_000_000_000


def test_encoding_option_applies_to_fields_without_their_own_encoding() -> None:
    assert read_json('{"value":"ff","key":"00"}', encoding="hex") == NewRecord(b"\0", b"\xff")
    assert read_json('{"value":"v","valueEncoding":"utf8"}', encoding="hex") == NewRecord(None, b"v")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"vale":"x"}', "unknown field 'vale'"),
        ('{"key":"x"}', 'no field "value"'),
        ('{"value":"x","valueEncoding":"base64"}', "the value is not valid base64"),
        ('{"value":"x","valueEncoding":"rot13"}', "unknown encoding 'rot13'"),
        ('{"value":"x","keyEncoding":"hex","key":"xy"}', "the key is not valid hex"),
        ('{"value":"x","timestamp":"soon"}', "timestamp: 'soon'"),
        ('{"value":"x","partition":-1}', "partition -1 is not a whole number of at least 0"),
        ('{"value":"x","partition":"1"}', "partition '1' is not a whole number"),
        ('{"value":"x","partition":true}', "partition True is not a whole number"),
        ('{"value":"x","headers":["h"]}', "a header must be"),
    ],
)
def test_malformed_json_line_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_json(line)


# -------------------------------------------------------------------------------------------------- lines of a pipe


def groups(*chunks: bytes) -> list[tuple[list[bytes], bool]]:
    """Write the chunks into a pipe, each after the previous one was read, and return the groups of lines."""
    read_end, write_end = os.pipe()
    found = []
    waiting = list(chunks)
    try:
        os.write(write_end, waiting.pop(0))
        for lines, is_input_idle in line_groups(read_end):
            found.append((lines, is_input_idle))
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


def test_lines_of_a_pipe_are_returned_as_they_are_written() -> None:
    assert groups(b"a\nb\n", b"c\r\n") == [([b"a", b"b"], True), ([b"c"], True)]
    assert groups(b"a\nb", b"c\n") == [([b"a"], True), ([b"bc"], True)]
    assert groups(b"a\nrest") == [([b"a"], True), ([b"rest"], False)]
    assert groups(b"\n\n") == [([b"", b""], True)]


def test_a_file_is_read_in_large_chunks(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    lines = [b"%d" % number * 10 for number in range(20_000)]
    path.write_bytes(b"\n".join(lines))
    with path.open("rb") as file:
        found = list(line_groups(file.fileno()))
    assert [line for group, _ in found for line in group] == lines
    assert not any(is_input_idle for _, is_input_idle in found)
    assert len(found) < path.stat().st_size / CHUNK_BYTES + 2


def test_a_line_longer_than_a_chunk_is_returned_whole(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (3 * CHUNK_BYTES) + b"\ny\n")
    with path.open("rb") as file:
        found = [line for group, _ in line_groups(file.fileno()) for line in group]
    assert found == [b"x" * (3 * CHUNK_BYTES), b"y"]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.cli.records.produce_lines.LINE_BYTES_MAX", 1_000_000)
    with open("/dev/zero", "rb") as file, pytest.raises(CommandError, match="more than 1,000,000 bytes"):
        list(line_groups(file.fileno()))
