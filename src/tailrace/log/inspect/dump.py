"""The contents of a log's files, entry by entry, as Apache Kafka's DumpLogSegments shows them.

A file becomes rows: a kind and named values, in the order and with the names of Kafka's tool. A line of text is the
names and values one after the other. Rows are yielded while the file is read.

    .log, .checkpoint        batches, and their records on request               (dump_log.py)
    .index, .timeindex       entries up to the padding
    .txnindex                aborted transactions
    .snapshot                producers
    leader-epoch-checkpoint  epochs and their start offsets
    *-offset-checkpoint      an offset for each partition
    partition.metadata, meta.properties, quorum-state, .kafka_cleanshutdown
                             properties
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

from tailrace.log.directories.data_directory import CHECKPOINTS
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import read_offsets
from tailrace.log.disk.files import Files
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.producers.producer_snapshot import decode_snapshot
from tailrace.log.segments.indexes.transaction_index import TransactionIndex
from tailrace.model.topic_config import INT_MAX

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_SUFFIXES = (file_names.DELETED, file_names.SWAP, file_names.CLEANED)
QUORUM_SNAPSHOT = ".checkpoint"
QUORUM_STATE = "quorum-state"
_PROPERTIES = (file_names.PARTITION_METADATA, file_names.META_PROPERTIES, QUORUM_STATE, file_names.CLEAN_SHUTDOWN)


class Row(NamedTuple):
    kind: str
    fields: dict[str, Any]


def kind_of(name: str) -> str | None:
    """Return log, index, timeindex, txnindex, snapshot or checkpoint, or None for a file that cannot be shown."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    parsed = file_names.parse_segment_file(name)
    if parsed:
        return parsed[1][1:]
    if name.endswith(QUORUM_SNAPSHOT):
        return "log"
    if name in CHECKPOINTS or name == file_names.LEADER_EPOCH_CHECKPOINT or name in _PROPERTIES:
        return "checkpoint"
    return None


def dump_small_file(files: Files, path: str) -> Iterator[Row]:
    """Yield the rows of any file but a log. Raise CorruptIndex, CorruptSnapshot or CorruptCheckpoint if it is
    invalid."""
    name = path.rpartition("/")[2]
    kind = kind_of(name)
    if kind in ("index", "timeindex"):
        return _dump_index(files, path, int(name[:20]), is_time=kind == "timeindex")
    if kind == "txnindex":
        return _dump_transaction_index(files, path, int(name[:20]))
    if kind == "snapshot":
        return _dump_snapshot(files, path)
    if name == file_names.LEADER_EPOCH_CHECKPOINT:
        return _dump_epochs(files, path)
    if name in CHECKPOINTS:
        return _dump_offsets(files, path)
    assert name in _PROPERTIES, f"{path} is not a file of a log"
    return _dump_properties(files, path)


def _dump_index(files: Files, path: str, base_offset: int, *, is_time: bool) -> Iterator[Row]:
    entry = _TIME_ENTRY if is_time else _OFFSET_ENTRY
    data = OverlayFiles(files).open(path).map()
    whole = len(data) // entry.size * entry.size
    for slot, (first, second) in enumerate(entry.iter_unpack(data[:whole])):
        if first == 0 and second == 0 and not any(data[slot * entry.size : whole]):
            break  # the rest is padding, because Kafka preallocates the files
        if is_time:
            yield Row("timeIndexEntry", {"timestamp": first, "offset": base_offset + second})
        else:
            yield Row("indexEntry", {"offset": base_offset + first, "position": second})
    if whole != len(data):
        yield Row("invalidBytes", {"size": len(data) - whole, "position": whole})


def _dump_transaction_index(files: Files, path: str, base_offset: int) -> Iterator[Row]:
    for entry in TransactionIndex(files, path, base_offset).entries:
        yield Row(
            "abortedTransaction",
            {
                "version": 0,
                "producerId": entry.producer_id,
                "firstOffset": entry.first_offset,
                "lastOffset": entry.last_offset,
                "lastStableOffset": entry.last_stable_offset,
            },
        )


def _dump_snapshot(files: Files, path: str) -> Iterator[Row]:
    for entry in decode_snapshot(files.read(path), path):
        first = entry.current_transaction_first_offset
        fields: dict[str, Any] = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": first if first >= 0 else None,
            "lastTimestamp": entry.timestamp,
        }
        if entry.last_offset >= 0:
            fields |= {
                "firstSequence": (entry.last_sequence - entry.offset_delta) & INT_MAX,
                "lastSequence": entry.last_sequence,
                "lastOffset": entry.last_offset,
                "offsetDelta": entry.offset_delta,
                "timestamp": entry.timestamp,
            }
        yield Row("producer", fields)


def _dump_epochs(files: Files, path: str) -> Iterator[Row]:
    epochs = LeaderEpochs(files, path)
    epochs.load()
    for epoch, start_offset in epochs.entries:
        yield Row("leaderEpoch", {"epoch": epoch, "startOffset": start_offset})


def _dump_offsets(files: Files, path: str) -> Iterator[Row]:
    for (topic, partition), offset in read_offsets(files, path).items():
        yield Row("offset", {"topic": topic, "partition": partition, "offset": offset})


def _dump_properties(files: Files, path: str) -> Iterator[Row]:
    text = files.read(path).decode("utf-8", "backslashreplace")
    try:
        properties = json.loads(text)
    except ValueError:
        properties = None
    if isinstance(properties, dict):
        yield from (Row("property", {"name": name, "value": value}) for name, value in properties.items())
        return
    separator = ": " if path.endswith(file_names.PARTITION_METADATA) else "="
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, value = line.partition(separator)
            yield Row("property", {"name": name, "value": value})
