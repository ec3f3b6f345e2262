"""Parses input lines into records: plain lines, optionally with headers and a key, or JSON objects of `consume`.

plain               value
--key-separator :   key:value
--headers           name:text,name:text TAB value       (the format of Kafka's console producer)
--json              {"key": "…", "value": "…", "headers": [{"key": "…", "value": "…"}], "timestamp": …, "partition": …}
"""

from __future__ import annotations

import argparse
import json
import os
import select
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from tailrace.cli.errors import CommandError
from tailrace.cli.parsing.options import timestamp

CHUNK_BYTES: Final = 262_144
LINE_BYTES_MAX: Final = 268_435_456
LINGER_S: Final = 0.01  # time to wait for more lines before the input counts as idle

_FIELDS = frozenset({"key", "value", "headers", "timestamp", "partition", "keyEncoding", "valueEncoding"})
# Fields that `consume` and `log cat` print, but a producer cannot set. They are ignored.
_IGNORED = frozenset({"topic", "offset", "timestampType", "leaderEpoch", "producerId", "producerEpoch", "sequence"})

Header = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None  # None: now
    partition: int | None = None  # None: chosen by the key


def line_groups(descriptor: int) -> Iterator[tuple[list[bytes], bool]]:
    """Yield groups of lines as they arrive, without line ends, and True if the input is idle after a group."""
    unfinished: list[bytes] = []
    size = 0
    while chunk := os.read(descriptor, CHUNK_BYTES):
        if b"\n" not in chunk:
            unfinished.append(chunk)
            size += len(chunk)
            if size > LINE_BYTES_MAX:
                raise CommandError(f"a line of the input has more than {LINE_BYTES_MAX:,} bytes, the limit of a record")
            continue
        size = 0
        lines = b"".join([*unfinished, chunk]).split(b"\n")
        unfinished = [lines.pop()]
        yield [line.removesuffix(b"\r") for line in lines], not _is_ready(descriptor)
    if last := b"".join(unfinished):
        yield [last.removesuffix(b"\r")], False


def _is_ready(descriptor: int) -> bool:
    """Return True if a read would return within LINGER_S. A file is always ready, a pipe or terminal if it has data.

    Windows has no such call: there each group of lines is sent at once.
    """
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(LINGER_S * 1_000))


def line_reader(options: argparse.Namespace) -> Callable[[bytes], NewRecord]:
    """Return a function that parses a line into a record. It raises ValueError for a malformed line."""
    fixed = tuple(_fixed_header(text) for text in options.header)
    read = _json_reader(options) if options.json else _plain_reader(options)
    if not fixed:
        return read

    def with_fixed_headers(line: bytes) -> NewRecord:
        record = read(line)
        return record._replace(headers=record.headers + fixed)

    return with_fixed_headers


def _fixed_header(text: str) -> Header:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"--header {text!r} is not a header: write NAME=VALUE")
    return name, value.encode()


# --------------------------------------------------------------------------------------------------------- plain lines


def _plain_reader(options: argparse.Namespace) -> Callable[[bytes], NewRecord]:
    separator = None if options.key_separator is None else _separator(options.key_separator)
    null = None if options.null is None else options.null.encode()

    def part(data: bytes) -> bytes | None:
        return None if data == null else data

    def read(line: bytes) -> NewRecord:
        headers: tuple[Header, ...] = ()
        if options.headers:
            before, tab, line = line.partition(b"\t")
            if not tab:
                raise ValueError("no tab after the headers (--headers expects name:text,name:text TAB value)")
            headers = tuple(_line_header(word, null) for word in before.split(b",")) if before else ()
        if separator is None:
            return NewRecord(None, part(line), headers)
        key, found, value = line.partition(separator)
        if not found:
            raise ValueError(f"no key separator {separator.decode()!r}")
        return NewRecord(part(key), part(value), headers)

    return read


def _separator(text: str) -> bytes:
    if not text:
        raise CommandError("--key-separator must not be empty")
    return text.replace("\\t", "\t").encode()


def _line_header(word: bytes, null: bytes | None) -> Header:
    name, colon, value = word.partition(b":")
    if not colon:
        raise ValueError(f"{word.decode(errors='replace')!r} is not a header: write name:text")
    try:
        return name.decode(), None if value == null else value
    except UnicodeDecodeError:
        raise ValueError("the name of a header is not UTF-8") from None


# ---------------------------------------------------------------------------------------------------------------- JSON


def _json_reader(options: argparse.Namespace) -> Callable[[bytes], NewRecord]:
    encoding: str = options.encoding

    def read(line: bytes) -> NewRecord:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise ValueError("not a JSON object")
        for name in fields:
            if name not in _FIELDS and name not in _IGNORED:
                raise ValueError(f"unknown field {name!r}; the fields are {', '.join(sorted(_FIELDS))}")
        if "value" not in fields:
            raise ValueError('no field "value" ("value": null writes a tombstone)')
        return NewRecord(
            _bytes_of(fields, "key", encoding),
            _bytes_of(fields, "value", encoding),
            _json_headers(fields.get("headers") or (), encoding),
            _json_timestamp(fields.get("timestamp")),
            None if options.repartition else _json_partition(fields.get("partition")),
        )

    return read


def _bytes_of(fields: dict[str, Any], name: str, encoding: str) -> bytes | None:
    """Return the bytes of a field: a string is decoded by its encoding, any other value is written as JSON."""
    content = fields.get(name)
    if content is None:
        return None
    if not isinstance(content, str):
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    encoding = fields.get(f"{name}Encoding", encoding)
    try:
        if encoding == "utf8":
            return content.encode()
        if encoding == "hex":
            return bytes.fromhex(content)
        if encoding == "base64":
            return b64decode(content, validate=True)
    except ValueError:
        raise ValueError(f"the {name} is not valid {encoding}") from None
    raise ValueError(f"unknown encoding {encoding!r}; use utf8, hex or base64")


def _json_headers(headers: Any, encoding: str) -> tuple[Header, ...]:
    if isinstance(headers, dict):
        headers = [{"key": name, "value": value} for name, value in headers.items()]
    found: list[Header] = []
    for header in headers:
        if not isinstance(header, dict) or not isinstance(header.get("key"), str):
            raise ValueError('a header must be {"key": "…", "value": "…"}')
        found.append((header["key"], _bytes_of(header, "value", encoding)))
    return tuple(found)


def _json_timestamp(content: Any) -> int | None:
    if content is None:
        return None
    try:
        return timestamp(str(content))
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"timestamp: {error}") from None


def _json_partition(content: Any) -> int | None:
    if content is not None and (not isinstance(content, int) or isinstance(content, bool) or content < 0):
        raise ValueError(f"partition {content!r} is not a whole number of at least 0")
    return content
