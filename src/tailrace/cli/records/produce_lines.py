"""Lines as records: plain ones, with a key in front or headers before that, or JSON objects as `consume` prints them.

plain               value
--key-separator :   key:value
--headers           name:text,name:text TAB value       (Kafka's console producer writes them so)
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
from tailrace.cli.options import timestamp

CHUNK_BYTES: Final = 262_144
LINGER_S: Final = 0.01  # how long more lines are waited for before those that are there are sent

_FIELDS = frozenset({"key", "value", "headers", "timestamp", "partition", "keyEncoding", "valueEncoding"})
# What `consume` and `log cat` print too, and a producer does not choose.
_NOT_CHOSEN = frozenset({"topic", "offset", "timestampType", "leaderEpoch", "producerId", "producerEpoch", "sequence"})

Header = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None  # None: now
    partition: int | None = None  # None: by the key


def line_groups(descriptor: int) -> Iterator[tuple[list[bytes], bool]]:
    """Lines as they arrive, without their ends, and whether to expect no more for the moment."""
    unfinished: list[bytes] = []
    while chunk := os.read(descriptor, CHUNK_BYTES):
        if b"\n" not in chunk:
            unfinished.append(chunk)
            continue
        lines = b"".join([*unfinished, chunk]).split(b"\n")
        unfinished = [lines.pop()]
        yield [line.removesuffix(b"\r") for line in lines], not _is_ready(descriptor)
    if last := b"".join(unfinished):
        yield [last.removesuffix(b"\r")], False


def _is_ready(descriptor: int) -> bool:
    """Whether a read would return at once; files are always ready, a terminal or a pipe is when something came."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(LINGER_S * 1_000))


def line_reader(options: argparse.Namespace) -> Callable[[bytes], NewRecord]:
    """What makes a record of a line; ValueError says what is wrong with the line."""
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
        raise CommandError(f"--header {text!r} is no header: write NAME=VALUE")
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
                raise ValueError("no tab ends its headers")
            headers = tuple(_line_header(word, null) for word in before.split(b",")) if before else ()
        if separator is None:
            return NewRecord(None, part(line), headers)
        key, found, value = line.partition(separator)
        if not found:
            raise ValueError(f"no {separator.decode()!r} parts a key from a value")
        return NewRecord(part(key), part(value), headers)

    return read


def _separator(text: str) -> bytes:
    if not text:
        raise CommandError("--key-separator must not be empty")
    return text.replace("\\t", "\t").encode()


def _line_header(word: bytes, null: bytes | None) -> Header:
    name, colon, value = word.partition(b":")
    if not colon:
        raise ValueError(f"{word.decode(errors='replace')!r} is no header: write name:text")
    try:
        return name.decode(), None if value == null else value
    except UnicodeDecodeError:
        raise ValueError("a header's name is not UTF-8") from None


# ---------------------------------------------------------------------------------------------------------------- JSON


def _json_reader(options: argparse.Namespace) -> Callable[[bytes], NewRecord]:
    encoding: str = options.encoding

    def read(line: bytes) -> NewRecord:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise ValueError(f"it is no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise ValueError("it is no JSON object")
        for name in fields:
            if name not in _FIELDS and name not in _NOT_CHOSEN:
                raise ValueError(f"{name!r} is no field of a record")
        if "value" not in fields:
            raise ValueError('it has no value ("value": null makes a tombstone)')
        return NewRecord(
            _bytes_of(fields, "key", encoding),
            _bytes_of(fields, "value", encoding),
            _json_headers(fields.get("headers") or (), encoding),
            _json_timestamp(fields.get("timestamp")),
            None if options.repartition else _json_partition(fields.get("partition")),
        )

    return read


def _bytes_of(fields: dict[str, Any], name: str, encoding: str) -> bytes | None:
    """The content of a field: text in its encoding, or any other JSON as it would be written."""
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
        raise ValueError(f"its {name} is not {encoding}") from None
    raise ValueError(f"there is no encoding {encoding!r}")


def _json_headers(headers: Any, encoding: str) -> tuple[Header, ...]:
    if isinstance(headers, dict):
        headers = [{"key": name, "value": value} for name, value in headers.items()]
    found: list[Header] = []
    for header in headers:
        if not isinstance(header, dict) or not isinstance(header.get("key"), str):
            raise ValueError('a header is written {"key": "…", "value": "…"}')
        found.append((header["key"], _bytes_of(header, "value", encoding)))
    return tuple(found)


def _json_timestamp(content: Any) -> int | None:
    if content is None:
        return None
    try:
        return timestamp(str(content))
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"its timestamp: {error}") from None


def _json_partition(content: Any) -> int | None:
    if content is not None and (not isinstance(content, int) or isinstance(content, bool) or content < 0):
        raise ValueError(f"{content!r} is no partition")
    return content
