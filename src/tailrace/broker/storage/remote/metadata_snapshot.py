"""The snapshot of the remote metadata: a file in the first log directory. A start does not read the whole topic.

    tailrace-remote-metadata 1 <CRC of the rest, 8 hex digits>
    {"topicId": …, "partitions": 50, "positions": {"0": [<next offset>, <CRC of the last batch>]}, "logs": [
        {"topicId": …, "partition": 0, "segments": [<record, base64>],
         "epochs": [[<epoch>, [<numbers of readable segments>], <highest offset>]]}]}

The topic is the truth. A snapshot that is damaged, or that the topic does not continue, is ignored, and the topic is
read from its start. Kafka ignores the file.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from tailrace.log.disk.files import Files, join, write_atomically
from tailrace.model.ids import Offset, TopicId
from tailrace.protocol.errors import ProtocolError
from tailrace.tiers.metadata.segment_cache import CacheState
from tailrace.tiers.metadata.segment_records import decode_record, encode_segment
from tailrace.tiers.remote_segment import RemoteSegment

_log = logging.getLogger(__name__)

NAME: Final = "tailrace-remote-metadata.snapshot"
_HEAD: Final = "tailrace-remote-metadata 1"

LogKey: TypeAlias = tuple[TopicId, int]


class ReadTo(NamedTuple):
    """How far a partition of the topic was read: the next offset, and the checksum of the batch before it."""

    position: Offset
    crc: int


class MetadataSnapshot(NamedTuple):
    """`logs` has the segments of each partition, or the form that they have in a file."""

    topic_id: str
    partition_count: int
    positions: Mapping[int, ReadTo]
    logs: Mapping[LogKey, CacheState | Mapping[str, Any]]


class SnapshotFile:
    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.path = join(directory, NAME)

    def write(self, snapshot: MetadataSnapshot) -> None:
        """Replace the file, on any thread."""
        found = {
            "topicId": snapshot.topic_id,
            "partitions": snapshot.partition_count,
            "positions": snapshot.positions,
            "logs": [_encoded(key, one) for key, one in snapshot.logs.items()],
        }
        body = json.dumps(found, separators=(",", ":")).encode()
        write_atomically(self._files, self.path, f"{_HEAD} {crc32(body):08x}\n".encode() + body)

    def read(self) -> MetadataSnapshot | None:
        """Return the snapshot, or None if there is none that can be used."""
        if not self._files.exists(self.path):
            return None
        try:
            head, _, body = self._files.read(self.path).partition(b"\n")
            if head != f"{_HEAD} {crc32(body):08x}".encode():
                raise ValueError("its checksum does not match")
            found = json.loads(body)
            return MetadataSnapshot(
                found["topicId"],
                found["partitions"],
                {int(number): ReadTo(*one) for number, one in found["positions"].items()},
                {(TopicId.parse(one["topicId"]), one["partition"]): one for one in found["logs"]},
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("%s is ignored, and __remote_log_metadata is read instead: %s", self.path, error)
            return None


def _encoded(key: LogKey, one: CacheState | Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(one, CacheState):
        return one
    numbers = {segment.segment_id: number for number, segment in enumerate(one.segments)}
    return {
        "topicId": str(key[0]),
        "partition": key[1],
        "segments": [base64.b64encode(encode_segment(segment)).decode() for segment in one.segments],
        "epochs": [[epoch, [numbers[known] for known in readable], highest] for epoch, readable, highest in one.epochs],
    }


def decode_log(one: CacheState | Mapping[str, Any]) -> CacheState | None:
    """Return the segments of a partition; None if the snapshot is wrong."""
    if isinstance(one, CacheState):
        return one
    try:
        segments = [decode_record(base64.b64decode(text, validate=True)) for text in one["segments"]]
        known = tuple(segment for segment in segments if isinstance(segment, RemoteSegment))
        epochs = tuple(
            (epoch, tuple(known[number].segment_id for number in readable), highest)
            for epoch, readable, highest in one["epochs"]
        )
    except (ProtocolError, binascii.Error, LookupError, TypeError, ValueError) as error:
        _log.error("a partition in the snapshot of the remote metadata cannot be decoded: %s", error)
        return None
    return CacheState(known, epochs)
