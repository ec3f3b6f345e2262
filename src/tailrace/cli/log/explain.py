"""`tailrace log explain`: show the steps of one read, as text with a small chart, or as JSON."""

from __future__ import annotations

import argparse
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from tailrace.cli.log.explain_text import read_text, timestamp_text
from tailrace.cli.log.partition_choice import log_files_at, now_ms, one_folder, open_directory, warn_of
from tailrace.cli.output import json_document, print_lines, warn
from tailrace.log.inspect.explain import (
    ReadExplanation,
    TimestampExplanation,
    explain_offset,
    explain_timestamp,
)
from tailrace.log.inspect.offline import open_bounds, open_exact
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.watermarks import Isolation
from tailrace.records.batch import CorruptBatch


def run(options: argparse.Namespace) -> int:
    files = log_files_at(options)
    folder = one_folder(open_directory(options, files))
    isolation = Isolation(options.isolation)
    open_it = open_exact if isolation is Isolation.READ_COMMITTED else open_bounds
    offline = open_it(files, folder, now_ms())
    warn_of(offline.findings)
    log = offline.log
    lookup: TimestampExplanation | None = None
    offset = options.offset
    try:
        if options.timestamp is not None:
            lookup = explain_timestamp(log, options.timestamp)
            offset = lookup.found.offset if lookup.found else None
        read = None if offset is None else explain_offset(log, offset, options.max_bytes, isolation)
    except (CorruptBatch, CorruptIndex) as error:
        warn(f"the read fails: {error}")
        return 1
    if options.json:
        print_lines(json_document(_document(lookup, read)))
    else:
        lines = timestamp_text(lookup) if lookup else []
        if read is not None:
            lines += ["", *read_text(read)] if lines else read_text(read)
        if folder.high_watermark is None and isolation is not Isolation.LOG_END:
            lines += ["", "No checkpoint has a high watermark for this partition: the log end is used instead."]
        print_lines(*lines)
    log.abandon()
    return 0


def _document(lookup: TimestampExplanation | None, read: ReadExplanation | None) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if lookup is not None:
        document["lookup"] = _plain(lookup)
    if read is not None:
        fields_by_name = _plain(read)
        del fields_by_name["result"]  # an open file; the other fields describe it
        document["read"] = fields_by_name
    return document


def _plain(value: Any) -> Any:
    """Convert dataclasses and tuples to JSON values, with names in camel case."""
    if is_dataclass(value) and not isinstance(value, type):
        return {_camel(part.name): _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {_camel(name): _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.value if isinstance(value, Enum) else value


def _camel(name: str) -> str:
    first, *others = name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in others)
