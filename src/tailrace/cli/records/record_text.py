"""Formats records as lines: JSON objects, or fields separated by tabs.

UTF-8 is printed as text. Other bytes are printed as base64 and marked: in JSON by a field `keyEncoding` or
`valueEncoding`, in text by the prefix `base64:`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Protocol

from tailrace.cli.output import json_line, time_text
from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record, TimestampType

_TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
# Control characters are escaped, so that a record stays on one line and cannot control the terminal.
_ESCAPES = {code: f"\\x{code:02x}" for code in [*range(32), 127]} | {9: "\\t", 10: "\\n", 13: "\\r"}


class BatchFacts(Protocol):
    """The fields of a record's batch that are printed."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...


def encoded(data: bytes, encoding: str) -> tuple[str, bool]:
    """Return bytes as text, and True if they are base64 because they are not UTF-8."""
    if encoding == "hex":
        return data.hex(), False
    if encoding == "base64":
        return b64encode(data).decode(), False
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return b64encode(data).decode(), True


class ValuesDecoder(Protocol):
    """Decodes keys and values, as RegistryValues does."""

    def decode(self, data: bytes) -> tuple[int, Any, str | None] | None: ...


def json_record(
    found: tuple[Record, BatchFacts],
    encoding: str,
    *,
    partition: TopicPartition | None = None,
    with_more: bool = False,
    decoder: ValuesDecoder | None = None,
) -> str:
    record, batch = found
    fields: dict[str, Any] = {}
    if partition is not None:
        fields |= {"topic": partition.topic, "partition": partition.partition}
    fields |= {"offset": record.offset, "timestamp": record.timestamp}
    if with_more:
        fields["timestampType"] = _TIMESTAMP_TYPES[record.timestamp_type]
    for name, data in (("key", record.key), ("value", record.value)):
        _put_encoded(fields, name, data, encoding)
        if decoder is not None and data is not None:
            _put_decoded(fields, name, decoder.decode(data))
    headers = []
    for title, content in record.headers:
        header: dict[str, Any] = {"key": title}
        _put_encoded(header, "value", content, encoding)
        headers.append(header)
    fields["headers"] = headers
    if with_more:
        fields |= {
            "leaderEpoch": batch.leader_epoch,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "sequence": record.sequence,
        }
    return json_line(fields)


def _put_encoded(fields: dict[str, Any], name: str, data: bytes | None, encoding: str) -> None:
    if data is None:
        fields[name] = None
        return
    fields[name], is_fallback = encoded(data, encoding)
    if is_fallback:
        fields[f"{name}Encoding"] = "base64"


def _put_decoded(fields: dict[str, Any], name: str, found: tuple[int, Any, str | None] | None) -> None:
    """Add what a schema registry knows about a value, beside its bytes."""
    if found is None:
        return
    schema_id, value, error = found
    fields[f"{name}Schema"] = schema_id
    fields.update({f"{name}Decoded": value} if error is None else {f"{name}Error": error})


def text_record(found: tuple[Record, BatchFacts], encoding: str, partition: TopicPartition) -> str:
    record, _ = found
    words = [
        str(partition),
        str(record.offset),
        time_text(record.timestamp),
        _field(record.key, encoding),
        _field(record.value, encoding),
    ]
    if record.headers:
        words.append(" ".join(f"{name.translate(_ESCAPES)}={_field(data, encoding)}" for name, data in record.headers))
    return "\t".join(words)


def _field(data: bytes | None, encoding: str) -> str:
    if data is None:
        return "null"
    text, is_fallback = encoded(data, encoding)
    return f"base64:{text}" if is_fallback else text.translate(_ESCAPES)
