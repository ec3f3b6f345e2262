"""Small text files that are replaced as a whole: offset checkpoints, topic ids, the directory's identity, the clean
stop.

An entries file has a version, a count, and one line per entry:

    0
    2
    orders 0 17
    orders 1 4
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.log.disk.files import Files, replace_whole, write_atomically
from tailrace.model.ids import Offset, TopicId, TopicPartition

_VERSION = "0"
_INTEGER = re.compile("-?[0-9]{1,19}")


class CorruptCheckpoint(Exception):
    """A checkpoint file that cannot be read. The text names the file and the line."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


def read_entries(files: Files, path: str, fields: int, *, missing_ok: bool) -> list[list[str]]:
    """Return the entries of a file, split into `fields` words each. The first word may be empty."""
    if missing_ok and not files.exists(path):
        return []
    try:
        lines = files.read(path).decode().splitlines()
    except UnicodeDecodeError:
        raise CorruptCheckpoint(path, "not a text file") from None
    if not lines:
        return []  # Kafka creates the file with the log and writes it later
    if lines[0].strip() != _VERSION:
        raise CorruptCheckpoint(path, f"unknown version {lines[0]!r:.200} in line 1")
    if len(lines) < 2 or not _is_integer(lines[1].strip()):
        raise CorruptCheckpoint(path, "no count in line 2")
    rows = [line.split() for line in lines[2:] if line.strip()]
    for number, row in enumerate(rows, 3):
        if len(row) != fields or not all(_is_integer(word) for word in row[-min(fields, 2) :]):
            raise CorruptCheckpoint(path, f"malformed line {number}: {lines[number - 1]!r:.200}")
    if len(rows) != int(lines[1]):
        raise CorruptCheckpoint(path, f"the count is {lines[1].strip()}, but there are {len(rows)} entries")
    return rows


def _is_integer(word: str) -> bool:
    return _INTEGER.fullmatch(word) is not None and -(2**63) <= int(word) < 2**63


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text. Raise ValueError for other text, fractions, and what is nested too deeply."""
    try:
        return json.loads(data, parse_float=_refuse, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None


def _refuse(number: str) -> None:
    raise ValueError(f"{number:.40} is not a whole number")


def write_entries(files: Files, path: str, lines: Iterable[str], *, sync_name: bool = True) -> None:
    write = write_atomically if sync_name else replace_whole
    write(files, path, encode_entries(list(lines)))


def encode_entries(rows: list[str]) -> bytes:
    """Return the bytes of an entries file."""
    return "".join(f"{line}\n" for line in [_VERSION, str(len(rows)), *rows]).encode()


def read_offsets(files: Files, path: str) -> dict[TopicPartition, Offset]:
    """Return the offset of each partition. A missing file has none."""
    rows = read_entries(files, path, 3, missing_ok=True)
    return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    write_atomically(files, path, encode_offsets(offsets))


def encode_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    return encode_entries(
        [f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items()]
    )


def read_topic_id(files: Files, path: str) -> TopicId:
    """Return the topic id in a `partition.metadata` file."""
    try:
        lines = [line.partition(": ") for line in files.read(path).decode().splitlines() if line.strip()]
        properties = {key: value.strip() for key, _, value in lines}
        if properties.get("version") != _VERSION:
            raise CorruptCheckpoint(path, f"unknown version {properties.get('version')!r}")
        return TopicId.parse(properties.get("topic_id", ""))
    except (UnicodeDecodeError, ValueError) as error:
        raise CorruptCheckpoint(path, f"malformed: {error}") from None


def write_topic_id(files: Files, path: str, topic_id: TopicId, *, sync_name: bool = True) -> None:
    write = write_atomically if sync_name else replace_whole
    write(files, path, f"version: {_VERSION}\ntopic_id: {topic_id}".encode())


@dataclass(frozen=True, slots=True)
class DirectoryIdentity:
    """`meta.properties`: the ids of cluster, node and directory."""

    cluster_id: str
    node_id: int
    directory_id: str

    @classmethod
    def read(cls, files: Files, path: str) -> DirectoryIdentity:
        try:
            text = files.read(path).decode()
            properties = dict(
                line.split("=", 1) for line in text.splitlines() if line.strip() and not line.startswith("#")
            )
            if properties.get("version") != "1":
                raise CorruptCheckpoint(path, f"unknown version {properties.get('version')!r}")
            directory_id = properties.get("directory.id", "")
            if directory_id:
                TopicId.parse(directory_id)
            return cls(properties["cluster.id"], int(properties["node.id"]), directory_id)
        except (UnicodeDecodeError, ValueError, KeyError) as error:
            raise CorruptCheckpoint(path, f"malformed: {error}") from None

    def write(self, files: Files, path: str) -> None:
        lines = [
            f"cluster.id={self.cluster_id}",
            f"directory.id={self.directory_id}",
            f"node.id={self.node_id}",
            "version=1",
        ]
        write_atomically(files, path, "".join(f"{line}\n" for line in ["#", *lines]).encode())


def read_clean_shutdown(files: Files, path: str) -> int | None:
    """Return the broker epoch of a clean stop (-1 if it is unknown), or None after an unclean stop."""
    if not files.exists(path):
        return None
    try:
        return int(parse_json(files.read(path)).get("brokerEpoch", -1))
    except (ValueError, AttributeError, TypeError):
        # Kafka before 3.7 left an empty file. The stop was clean, but its epoch is unknown.
        return -1


def write_clean_shutdown(files: Files, path: str, broker_epoch: int) -> None:
    write_atomically(
        files, path, json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
    )
