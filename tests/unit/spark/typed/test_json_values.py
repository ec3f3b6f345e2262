"""JSON values become columns, with the same result whatever their neighbours are."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa

from tailrace.records.columnar import json_lines
from tailrace.spark.typed.values.json_values import JsonDecoder
from tests.support.interpreted import interpreted

oracle = interpreted(json_lines)
ORDER = pa.schema([
    ("id", pa.int64()),
    ("name", pa.string()),
    ("total", pa.float64()),
    ("at", pa.timestamp("us", tz="UTC")),
    ("day", pa.date32()),
    ("lines", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int32())]))),
])  # fmt: skip


def scan(kernel: Any, values: list[bytes]) -> tuple[bytes, bytes]:
    import array

    ends = array.array("i", [0])
    for value in values:
        ends.append(ends[-1] + len(value))
    out, faults = bytearray(ends[-1] + len(values)), bytearray(len(values))
    used = kernel.join_lines(memoryview(b"".join(values)), memoryview(ends), out, faults)
    return bytes(out[:used]), bytes(faults)


def decode(*values: bytes) -> tuple[list[Any], dict[int, str]]:
    found = JsonDecoder(ORDER).decode(pa.array(values, pa.binary()))
    return found.array.to_pylist(), found.errors


def test_objects_become_typed_columns() -> None:
    (row,), errors = decode(
        b'{"id":1,"name":"\\u00e9\\n","total":2,"at":"2024-01-02T03:04:05.678Z","day":"2024-02-29",'
        b'"lines":[{"sku":"a","n":2,"x":0},{}],"other":{"deep":[1]}}'
    )
    assert errors == {}
    assert (row["id"], row["name"], row["total"], str(row["day"])) == (1, "é\n", 2.0, "2024-02-29")
    assert row["at"].isoformat() == "2024-01-02T03:04:05.678000+00:00"
    assert row["lines"] == [{"sku": "a", "n": 2}, {"sku": None, "n": None}]


def test_missing_and_null_members_are_null_and_whitespace_is_allowed() -> None:
    rows, errors = decode(b" \n{ }\r\n", b'{"id"\n:\n null}', b'{"id":3}')
    assert (errors, [row["id"] for row in rows]) == ({}, [None, None, 3])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"7", "is not a JSON object"),
        (b"[1]", "is not a JSON object"),
        (b"\xef\xbb\xbf{}", "is not a JSON object"),
        (b'{"id":1', "ends inside the JSON object"),
        (b'{"name":"x', "ends inside the JSON object"),
        (b'{"name":"x\\', "ends inside the JSON object"),
        (b'{"id":1}{"id":2}', "has text after the JSON object"),
        (b'{"id":1}\n{"id":2}', "has text after the JSON object"),
        (b'{"id":1},"x":2', "has text after the JSON object"),
        (b'{"name":"a\nb"}', "has a control character"),
        (b'{"id":1\x00}', "has a control character"),
        (b'{"name":"\xff"}', "is not UTF-8"),
        (b'{"name":"\xed\xa0\x80"}', "is not UTF-8"),
        (b'{"name":"\xc0\x80"}', "is not UTF-8"),
        (b'{"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}", "nested deeper than 128 levels"),
        (b'{"x":' + b"[" * 1_000_000, "nested deeper than 128 levels"),
        (b'{"name":"\\ud800"}', "surrogate"),
        (b'{"id":9223372036854775808}', "9223372036854775808"),
        (b'{"id":' + b"9" * 100_000 + b"}", "int64"),
        (b'{"id":1.5}', "int64"),
        (b'{"id":"1"}', "string"),
        (b'{"total":1e999}', "too big"),
        (b'{"id":1,"id":2}', "specified twice"),
        (b'{"at":"yesterday"}', "timestamp"),
        (b'{"day":"2023-02-29"}', "date32"),
        (b'{"lines":[{"n":3000000000}]}', "int32"),
        (b'{"lines":[}]}', ""),
        (b"{'id':1}", "name"),
        (b'{"id":01}', ""),
        (b'{"id":1,}', ""),
    ],
)
def test_a_broken_value_is_null_with_its_reason_and_harms_no_neighbour(value: bytes, words: str) -> None:
    good = b'{"id":5}'
    rows, errors = decode(good, value, good, good)
    assert [None if row is None else row["id"] for row in rows] == [5, None, 5, 5]
    assert list(errors) == [1]
    assert words in errors[1]
    assert len(errors[1]) < 400


def test_nan_and_infinity_are_accepted_for_floating_point_columns() -> None:
    rows, errors = decode(b'{"total":NaN}', b'{"total":-Infinity}', b'{"id":NaN}')
    assert (str(rows[0]["total"]), rows[1]["total"], list(errors)) == ("nan", float("-inf"), [2])


def test_all_values_can_be_broken() -> None:
    rows, errors = decode(b"x", b'{"id":"x"}')
    assert (rows, sorted(errors)) == ([None, None], [0, 1])
    assert decode() == ([], {})


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)
TEXT = st.one_of(
    st.dictionaries(st.sampled_from(["id", "name", "x", "é"]), JSON, max_size=3).map(
        lambda value: json.dumps(value, indent=None, ensure_ascii=False).encode()
    ),
    st.dictionaries(st.sampled_from(["id", "name", "x"]), JSON, max_size=3).map(
        lambda value: json.dumps(value, indent=1).encode()
    ),
    st.text(alphabet='{}[]",:\\\n 1id' + string.whitespace, max_size=20).map(str.encode),
    st.binary(max_size=12).map(lambda some: b'{"name":"' + some + b'"}'),
)


@given(st.lists(TEXT, max_size=6))
def test_the_compiled_and_the_interpreted_scanner_have_equal_results(values: list[bytes]) -> None:
    assert scan(json_lines, values) == scan(oracle, values)


@given(st.lists(TEXT, max_size=6))
def test_every_json_object_passes_the_scanner_and_is_unchanged(values: list[bytes]) -> None:
    lines, faults = scan(json_lines, values)
    assert lines.count(b"\n") == faults.count(0)
    passed = iter(lines.splitlines())
    for value, fault in zip(values, faults, strict=True):
        try:
            parsed = json.loads(value.decode())
        except ValueError:
            parsed = None
        if not fault:
            line = next(passed)
            assert parsed is None or json.loads(line) == parsed
        else:
            assert not isinstance(parsed, dict)


@given(st.lists(TEXT, max_size=5))
def test_a_value_has_the_same_result_alone_and_among_others(values: list[bytes]) -> None:
    together, errors = decode(*values)
    for row, value in enumerate(values):
        alone, error = decode(value)
        assert repr(alone[0]) == repr(together[row])
        assert (0 in error) == (row in errors)
