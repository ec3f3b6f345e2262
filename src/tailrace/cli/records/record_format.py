"""The format of `consume -f`, with the tokens of kcat.

- %t, %p and %o are topic, partition and offset; %T is the timestamp in milliseconds.
- %k and %s are key and value; %K and %S are their sizes, or -1 for null.
- %h is the list of headers: name=value,name=value.
- %% is a percent sign. The escapes are \\n, \\r, \\t, \\\\ and \\xHH.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final

from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record

Part = Callable[[TopicPartition, Record], bytes]
_TOKEN: Final = re.compile(r"%(?P<token>.?)|\\(?:x(?P<hex>[0-9A-Fa-f]{2})|(?P<escape>.?))", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _headers(partition: TopicPartition, record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers)


_PARTS: Final[dict[str, Part]] = {
    "t": lambda partition, record: partition.topic.encode(),
    "p": lambda partition, record: b"%d" % partition.partition,
    "o": lambda partition, record: b"%d" % record.offset,
    "k": lambda partition, record: record.key or b"",
    "K": lambda partition, record: _size(record.key),
    "s": lambda partition, record: record.value or b"",
    "S": lambda partition, record: _size(record.value),
    "T": lambda partition, record: b"%d" % record.timestamp,
    "h": _headers,
    "%": lambda partition, record: b"%",
}


class RecordFormat:
    """A compiled format: it returns the bytes to print for a record."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def __call__(self, partition: TopicPartition, record: Record) -> bytes:
        return b"".join([part(partition, record) for part in self._parts])


def record_format(text: str) -> RecordFormat:
    """Compile a format. Raise ArgumentTypeError for an unknown token."""
    parts: list[Part] = []
    position = 0
    for found in _TOKEN.finditer(text):
        parts += _literal(text[position : found.start()].encode())
        position = found.end()
        if found["token"] is not None:
            if found["token"] not in _PARTS:
                raise argparse.ArgumentTypeError(
                    f"{found[0]!r} is not a token of a format; known are {' '.join(f'%{name}' for name in _PARTS)}"
                )
            parts.append(_PARTS[found["token"]])
        elif found["hex"] is not None:
            parts += _literal(bytes.fromhex(found["hex"]))
        elif found["escape"] in _ESCAPES:
            parts += _literal(_ESCAPES[found["escape"]])
        else:
            raise argparse.ArgumentTypeError(f"{found[0]!r} is not an escape; known are \\n \\r \\t \\\\ \\xHH")
    parts += _literal(text[position:].encode())
    return RecordFormat(parts)


def key_and_value(separator: str) -> RecordFormat:
    """Return the format of `consume -K`: key, separator, value and a line end."""
    text = separator.replace("\\t", "\t").encode()
    return RecordFormat([_PARTS["k"], *_literal(text), _PARTS["s"], *_literal(b"\n")])


def _literal(text: bytes) -> list[Part]:
    return [lambda partition, record: text] if text else []
