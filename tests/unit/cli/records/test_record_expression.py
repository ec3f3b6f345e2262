"""The expression of --where: what it finds, what it refuses, and that it never runs as Python."""

from __future__ import annotations

import pytest

from tailrace.cli.errors import CommandError
from tailrace.cli.records.record_expression import record_condition
from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record, RecordHeader, TimestampType

PARTITION = TopicPartition("orders", 3)


def record(value: bytes | None = b'{"price": 60, "city": "Oslo", "items": ["tea", "rice"]}') -> Record:
    return Record(17, 1_000, TimestampType.CREATE_TIME, b"customer-7", value, (RecordHeader("trace", b"9"),))


@pytest.mark.parametrize(
    "text",
    [
        "value.price > 50",
        'value["price"] == 60 and value.city == "Oslo"',
        "50 < value.price <= 60",
        '"Oslo" in text',
        '"tea" in value.items',
        'value.items[1] == "rice" and value.items[9] is None',
        'key.startswith("customer-")',
        'key in ["customer-7", "customer-8"]',
        'headers.trace == "9"',
        "int(headers.trace) + 1 == 10",
        "offset == 17 and partition == 3 and timestamp >= 1000",
        r'matches(text, "pri.e")',
        "value.missing is None",
        "not value.missing",
        "value.missing > 5 or value.price > 5",
        "len(key) == 10 and key.upper().lower() == key",
        "value.price % 7 == 4",
    ],
)
def test_a_condition_that_holds_matches_the_record(text: str) -> None:
    assert record_condition(text)(PARTITION, record(), None)


@pytest.mark.parametrize(
    "text",
    [
        "value.price > 60",
        "value.city > 5",  # values that cannot be ordered
        "value.missing.deeper > 5",
        "value.price / 0 > 1",
        "key == 'other'",
        "int(key) > 1",
    ],
)
def test_a_condition_that_does_not_hold_or_fails_matches_nothing(text: str) -> None:
    assert not record_condition(text)(PARTITION, record(), None)


def test_a_value_that_is_not_json_is_text_and_a_null_is_none() -> None:
    assert record_condition('"plain" in value')(PARTITION, record(b"plain text"), None)
    assert record_condition("value is None and text is None")(PARTITION, record(None), None)


def test_a_decoder_replaces_json() -> None:
    assert record_condition("value.a == 1")(PARTITION, record(b"\0\0\0\0\1x"), lambda data: {"a": 1})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "value.price >",
        "unknown == 1",
        "__import__('os').system('id')",
        "key.format(1)",
        "(lambda: 1)()",
        "[one for one in key]",
        "key := 1",
        "open('/etc/passwd')",
        "f'{key}'",
        "key * 10 ** 10",
        "(" * 100 + "1" + ")" * 100 + " and " + "-" * 60 + "1",
        "print(key)",
        "value.price == 1; 2",
    ],
)
def test_anything_outside_the_language_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--where"):
        record_condition(text)


def test_a_constant_pattern_that_is_not_a_regular_expression_is_refused() -> None:
    with pytest.raises(CommandError, match=r"'\(' is not a valid regular expression"):
        record_condition('offset > 3 and matches(text, "(")')


def test_a_pattern_of_the_record_that_is_not_a_regular_expression_matches_nothing() -> None:
    assert not record_condition("matches(text, key)")(
        PARTITION, Record(0, 0, TimestampType.CREATE_TIME, b"(", b"x", ()), None
    )


def test_an_attribute_is_a_member_of_the_record_and_never_one_of_python() -> None:
    for text in ("key.__class__", "value.__class__", "headers.__dict__", "key.strip.__globals__"):
        assert not record_condition(text)(PARTITION, record(), None)


def test_a_text_is_not_multiplied() -> None:
    assert not record_condition("len(key * 1000000000) > 0")(PARTITION, record(), None)
