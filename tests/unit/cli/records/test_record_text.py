from __future__ import annotations

import json

from tailrace.cli.records.record_text import json_record, text_record
from tailrace.log.inspect.offline_records import FoundRecord
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record, RecordHeader, TimestampType

PARTITION = TopicPartition("t", 0)
BATCH = BatchHeader(0, 100, 7, 7, 3, 2, 0, 0, 1000, 1000, -1, -1, -1, 1)


def found(key: bytes | None, value: bytes | None, *headers: RecordHeader) -> FoundRecord:
    return FoundRecord(Record(7, 1000, TimestampType.CREATE_TIME, key, value, headers), BATCH)


def test_bytes_that_are_not_utf8_are_printed_as_marked_base64() -> None:
    record = found(b"\xff\xfe", "größe".encode(), RecordHeader("h", b"\x80"), RecordHeader("n", None))
    fields = json.loads(json_record(record, "utf8"))
    assert (fields["key"], fields["keyEncoding"]) == ("//4=", "base64")
    assert fields["value"] == "größe"
    assert "valueEncoding" not in fields
    assert fields["headers"] == [
        {"key": "h", "value": "gA==", "valueEncoding": "base64"},
        {"key": "n", "value": None},
    ]
    assert text_record(record, "utf8", PARTITION).split("\t")[3:] == ["base64://4=", "größe", "h=base64:gA== n=null"]


def test_chosen_encoding_is_not_marked() -> None:
    fields = json.loads(json_record(found(b"\xff", b"\xff"), "base64"))
    assert (fields["key"], fields["value"]) == ("/w==", "/w==")
    assert "keyEncoding" not in fields
    assert text_record(found(b"\xff", None), "hex", PARTITION).split("\t")[3:] == ["ff", "null"]


def test_control_characters_of_a_record_are_escaped() -> None:
    line = text_record(found(b"a\tb", b"one\ntwo\x1b[31m\x00"), "utf8", PARTITION)
    assert line.split("\t")[3:] == ["a\\tb", "one\\ntwo\\x1b[31m\\x00"]
