"""The Kafka offsets in the checkpoint of a Spark stream, of this source or of Spark's own Kafka connector.

Spark writes `offsets/N`, the ends of batch N, before it runs the batch, and `commits/N` after it. So a batch with both
files is committed, and a batch without the second one is only planned: after a restart Spark runs it again. The next
record to read is at the end of the last committed batch.

    offsets/4    v1                               or    v2
                 {"batchWatermarkMs": …}                {"batchWatermarkMs": …}
                 {"orders": {"0": 23, "1": 17}}         0:{"orders": {"0": 23, "1": 17}}

There is one line for each source of the query; v2 names the source. A source that is not Kafka has an offset of another
form, and a source without new records may have `-`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tailrace.log.disk.files import Files
from tailrace.model.ids import Offset, TopicPartition

_VERSIONS: Final = ("v1", "v2")
_MAX_FILE: Final = 64 * 1024 * 1024
_MAX_NUMBER: Final = 2**63 - 1


class WrongCheckpoint(Exception):
    """A folder that is not a checkpoint, or a file in it that cannot be read. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """The offsets of one source of the query."""

    name: str  # its number, or in v2 its name
    committed: dict[TopicPartition, Offset] | None  # the ends of the last committed batch; None: not Kafka's
    planned: dict[TopicPartition, Offset] | None  # the ends of the planned batch; None: no such batch, or not Kafka's


@dataclass(frozen=True, slots=True)
class Checkpoint:
    query_id: str | None
    committed_batch: int | None
    planned_batch: int | None  # a batch that was planned and not committed
    sources: list[SourceOffsets] = field(default_factory=list)


def read_checkpoint(files: Files, path: str) -> Checkpoint:
    """Read the checkpoint in a folder. Raise WrongCheckpoint if it has none."""
    planned, committed = _batches(files, f"{path}/offsets"), _batches(files, f"{path}/commits")
    if planned is None:
        raise WrongCheckpoint(f"{path} is not the checkpoint of a Spark stream: it has no folder offsets")
    last_committed = max(committed or (), default=None)
    last_planned = max(planned, default=None)
    if last_committed is not None and last_committed not in planned:
        raise WrongCheckpoint(
            f"{path}/offsets/{last_committed} is missing, but batch {last_committed} is committed: "
            "the checkpoint is not complete"
        )
    if last_planned == last_committed:
        last_planned = None
    done = {} if last_committed is None else _read_offsets(files, f"{path}/offsets/{last_committed}")
    next_ = {} if last_planned is None else _read_offsets(files, f"{path}/offsets/{last_planned}")
    sources = []
    for name in dict.fromkeys([*done, *next_]):
        sources.append(SourceOffsets(name, done.get(name), next_.get(name)))
    return Checkpoint(_query_id(files, path), last_committed, last_planned, sources)


def committed_offsets(checkpoint: Checkpoint, path: str, source: str | None = None) -> dict[TopicPartition, Offset]:
    """Return the committed ends of one source, or of all Kafka sources. Raise WrongCheckpoint if there are none."""
    if checkpoint.committed_batch is None:
        raise WrongCheckpoint(f"{path} has no committed batch: the stream has not processed any record")
    names = [one.name for one in checkpoint.sources]
    if source is not None and source not in names:
        raise WrongCheckpoint(f"{path} has no source {source!r}; its sources are {', '.join(names)}")
    result: dict[TopicPartition, Offset] = {}
    for one in checkpoint.sources:
        if source not in (None, one.name):
            continue
        for partition, offset in (one.committed or {}).items():
            if result.setdefault(partition, offset) != offset:
                raise WrongCheckpoint(
                    f"{path} has two sources that read {partition}, up to {result[partition]} and up to {offset}: "
                    f"choose one with --source ({', '.join(names)})"
                )
    if not result:
        what = "no source" if source is None else f"source {source!r}"
        raise WrongCheckpoint(f"{path} has no offsets of Kafka: {what} reads topics")
    return result


def _batches(files: Files, path: str) -> set[int] | None:
    """Return the numbers of the batches in a folder; None if there is no such folder."""
    try:
        entries = files.entries(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    # Spark leaves checksums (.4.crc) and temporary files (.4.….tmp) beside them.
    names = [entry.name for entry in entries if not entry.is_directory]
    return {int(name) for name in names if name.isascii() and name.isdigit() and int(name) <= _MAX_NUMBER}


def _query_id(files: Files, path: str) -> str | None:
    if not files.exists(f"{path}/metadata"):
        return None
    found = _parsed(_text(files, f"{path}/metadata"), f"{path}/metadata")
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None


def _read_offsets(files: Files, path: str) -> dict[str, dict[TopicPartition, Offset] | None]:
    """Return the offsets of each source by its name; None for a source that is not Kafka's."""
    version, *lines = _text(files, path).splitlines() or [""]
    if version not in _VERSIONS or not lines:
        raise WrongCheckpoint(f"{path} has version {version[:20]!r}; the known ones are {' and '.join(_VERSIONS)}")
    result: dict[str, dict[TopicPartition, Offset] | None] = {}
    for number, line in enumerate(line for line in lines[1:] if line):
        name, text = str(number), line
        if version == "v2":
            name, _, text = line.partition(":")
        result[name] = None if text in ("-", "null") else _kafka_offsets(_parsed(text, path))
    return result


def _kafka_offsets(parsed: Any) -> dict[TopicPartition, Offset] | None:
    """Return the offsets in {"topic": {"0": 23}}; None if the value has another form."""
    if not isinstance(parsed, dict):
        return None
    result = {}
    for topic, numbers in parsed.items():
        if not isinstance(numbers, dict):
            return None
        for partition, offset in numbers.items():
            if not (partition.isascii() and partition.isdigit()) or type(offset) is not int:
                return None
            if int(partition) >= 2**31 or not 0 <= offset <= _MAX_NUMBER:
                return None
            result[TopicPartition(topic, int(partition))] = offset
    return result


def _text(files: Files, path: str) -> str:
    size = files.size(path)
    if size > _MAX_FILE:
        raise WrongCheckpoint(f"{path} has {size} bytes; a file of a checkpoint has at most {_MAX_FILE}")
    try:
        return files.read(path).decode()
    except UnicodeDecodeError:
        raise WrongCheckpoint(f"{path} is not a file of a checkpoint: it is not text") from None


def _parsed(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise WrongCheckpoint(f"{path} has a line that is not JSON: {text[:60]!r}") from None


def starting_offsets_json(offsets: Mapping[TopicPartition, Offset]) -> str:
    """Return the offsets as a value of the option startingOffsets."""
    topics: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        topics.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return json.dumps(topics)
