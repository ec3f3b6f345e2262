from __future__ import annotations

import pytest

from tailrace.cli.records.record_format import key_and_value, record_format
from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record, RecordHeader, TimestampType

PARTITION = TopicPartition("orders", 3)
RECORD = Record(
    offset=17,
    timestamp=1_700_000_000_123,
    timestamp_type=TimestampType.CREATE_TIME,
    key=b"k\xff",
    value=b"value",
    headers=(RecordHeader("trace", b"1"), RecordHeader("none", None)),
)
NULLS = Record(offset=18, timestamp=5, timestamp_type=TimestampType.CREATE_TIME, key=None, value=None)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("%t %p %o %T", b"orders 3 17 1700000000123"),
        ("%k|%K|%s|%S", b"k\xff|2|value|5"),
        ("%h", b"trace=1,none=NULL"),
        (r"100%%\n\t\r\\\x41é", b"100%\n\t\r\\A\xc3\xa9"),
        ("", b""),
    ],
)
def test_tokens_are_replaced_as_kcat_does(text: str, printed: bytes) -> None:
    assert record_format(text)(PARTITION, RECORD) == printed


def test_null_is_empty_and_has_the_size_minus_one() -> None:
    assert record_format("%k|%K|%s|%S|%h")(PARTITION, NULLS) == b"|-1||-1|"


def test_a_separator_prints_key_and_value() -> None:
    assert key_and_value("\\t")(PARTITION, RECORD) == b"k\xff\tvalue\n"
