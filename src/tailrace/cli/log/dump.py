"""`tailrace log dump`: print the contents of log files in the format of kafka-dump-log, or as JSON lines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import files_at, open_directory, tidy_path
from tailrace.cli.output import json_line, print_lines, warn
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import Files, join
from tailrace.log.inspect.dump import QUORUM_SNAPSHOT, Row, dump_small_file, kind_of
from tailrace.log.inspect.dump_decoders import compact_json, decoder_for
from tailrace.log.inspect.dump_log import DumpOptions, dump_log_file
from tailrace.log.producers.producer_snapshot import CorruptSnapshot
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.model.ids import Offset
from tailrace.object_stores.store_address import is_remote

# Fields that kafka-dump-log prints as a Java Optional, and names that it prints without a colon.
_OPTIONAL = ("deleteHorizonMs", "currentTxnFirstOffset")
_WITHOUT_COLON = ("SnapshotHeader", "SnapshotFooter", "KRaftVersion", "KRaftVoters")


def run(options: argparse.Namespace) -> int:
    files = files_at(options.directory)
    status = 0
    for path in _paths(files, options):
        try:
            if options.json:
                _dump_json(files, path, options)
            else:
                _dump_text(files, path, options)
        except (CorruptIndex, CorruptSnapshot, CorruptCheckpoint) as error:
            warn(str(error))
            status = 1
        except FileNotFoundError:
            if os.path.isfile(tidy_path(options.directory)):
                raise
            warn(f"{path} was deleted while the directory was read")
        except BrokenPipeError:
            raise
        except OSError as error:
            warn(f"{path} cannot be read: {error.strerror}")
            status = 1
    return status


# Choice of files


def _paths(files: Files, options: argparse.Namespace) -> Iterator[str]:
    path = tidy_path(options.directory)
    is_file = kind_of(os.path.basename(path)) is not None if is_remote(path) else not os.path.isdir(path)
    if is_file:
        files.size(path)
        if kind_of(os.path.basename(path)) is None:
            raise CommandError(
                f"{path} is not a log file: the name must end in .log, .index, .timeindex, .txnindex, .snapshot, …"
            )
        yield path
        return
    directory = open_directory(options, files)
    wanted = set(options.only or ())
    if len(directory.folders) != 1 and not options.topic and not options.partition:
        yield from _shown(files, path, wanted, options.segment)
    for folder in directory.folders:
        yield from _shown(files, folder.path, wanted, options.segment)


def _shown(files: Files, directory: str, wanted: set[str], segment: Offset | None) -> Iterator[str]:
    for name in sorted(entry.name for entry in files.entries(directory) if not entry.is_directory):
        kind = kind_of(name)
        parsed = file_names.parse_segment_file(name)
        is_chosen = segment is None or (parsed is not None and parsed[0] == segment)
        if kind is not None and is_chosen and (not wanted or kind in wanted):
            yield join(directory, name)


def _rows(files: Files, path: str, options: argparse.Namespace) -> Iterator[Row]:
    if kind_of(os.path.basename(path)) != "log":
        return dump_small_file(files, path)
    decode = None
    if options.print_data:
        partition = file_names.parse_partition_folder(os.path.basename(os.path.dirname(os.path.abspath(path))))
        topic = partition.topic if partition else None
        if os.path.basename(path).endswith(QUORUM_SNAPSHOT):
            topic = file_names.CLUSTER_METADATA_TOPIC
        decode = decoder_for(topic, options.encoding)
    return dump_log_file(files, path, DumpOptions(options.records, decode, options.max_bytes, options.from_byte))


# JSON


def _dump_json(files: Files, path: str, options: argparse.Namespace) -> None:
    for kind, fields in _rows(files, path, options):
        print_lines(json_line({"file": path, "kind": kind, **fields}))


# Text


def _dump_text(files: Files, path: str, options: argparse.Namespace) -> None:
    print_lines(f"Dumping {path}", *_title(os.path.basename(path)))
    is_empty = True
    for row in _rows(files, path, options):
        is_empty = False
        print_lines(_line(row, path))
    if is_empty and path.endswith(file_names.OFFSET_INDEX):
        print_lines(f"{path} is empty.")


def _title(name: str) -> list[str]:
    if name == f"bootstrap{QUORUM_SNAPSHOT}":
        return ["KRaft bootstrap snapshot"]
    if name.endswith(QUORUM_SNAPSHOT):
        offset, _, epoch = name.removesuffix(QUORUM_SNAPSHOT).partition("-")
        if offset.isdecimal() and epoch.isdecimal():
            return [f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"]
    return [f"Log starting offset: {int(name[:20])}"] if kind_of(name) == "log" and name[:20].isdecimal() else []


def _line(row: Row, path: str) -> str:
    kind, fields = row
    if kind == "invalidBytes":
        reason = f" ({fields['reason']})" if "reason" in fields else ""
        return f"Found {fields['size']} invalid bytes at the end of {os.path.basename(path)}{reason}"
    if kind == "undecodable":
        return f"| the records of the batch at position {fields['position']} cannot be decoded: {fields['reason']}"
    if kind == "property":
        return f"{fields['name']}: {_value_text('', fields['value'])}"
    words = [
        f"{name}{'' if name in _WITHOUT_COLON else ':'} {_value_text(name, value)}" for name, value in fields.items()
    ]
    return ("| " if kind == "record" else "") + " ".join(words)


def _value_text(name: str, value: Any) -> str:
    if name in _OPTIONAL:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if name == "headerKeys":
        return f"[{','.join(value)}]"
    return compact_json(value) if isinstance(value, dict | list) else str(value)
