"""Manifest: the JSON object that describes a remote segment: its chunks, its indexes and its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tailrace.model.ids import TopicId
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState
from tailrace.tiers.stores.aiven.chunk_index import ChunkIndex, WrongManifest
from tailrace.tiers.stores.remote_store import IndexKind

MANIFEST_MAX: Final = 32 * 1024 * 1024
_INDEXES: Final = {
    "offset": IndexKind.OFFSET,
    "timestamp": IndexKind.TIMESTAMP,
    "producerSnapshot": IndexKind.PRODUCER_SNAPSHOT,
    "leaderEpoch": IndexKind.LEADER_EPOCH,
    "transaction": IndexKind.TRANSACTION,
}
INDEX_ORDER: Final = tuple(_INDEXES.values())  # in the object of indexes


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a manifest. `indexes` has the position and the size of each index; a segment may lack one."""

    chunks: ChunkIndex
    indexes: Mapping[IndexKind, tuple[int, int]]
    is_compressed: bool
    segment: RemoteSegment

    def encode(self) -> bytes:
        indexes = {
            name: {"position": self.indexes[kind][0], "size": self.indexes[kind][1]} if kind in self.indexes else None
            for name, kind in _INDEXES.items()
        }
        found = {
            "version": "1",
            "chunkIndex": self.chunks.as_json(),
            "segmentIndexes": indexes,
            "compression": self.is_compressed,
            "remoteLogSegmentMetadata": _segment_json(self.segment),
        }
        return json.dumps(found, separators=(",", ":")).encode()


def parse_manifest(data: bytes) -> Manifest:
    """Parse a manifest. Raise WrongManifest with the reason if it cannot be used."""
    try:
        found = json.loads(data)
        if str(found["version"]) != "1":
            raise WrongManifest(f"it has version {found['version']}; only version 1 is supported")
        if found.get("encryption") is not None:
            raise WrongManifest("the segment is encrypted; encrypted segments are not supported")
        if found.get("segmentIndexes") is None:
            raise WrongManifest("it has no positions of indexes, as of an old release of the plugin")
        indexes = {
            kind: (int(part["position"]), int(part["size"]))
            for name, kind in _INDEXES.items()
            if (part := found["segmentIndexes"].get(name)) is not None
        }
        if any(position < 0 or size < 0 for position, size in indexes.values()):
            raise WrongManifest("an index has a negative position or size")
        chunks = ChunkIndex.from_json(found["chunkIndex"])
        return Manifest(chunks, indexes, bool(found["compression"]), _segment_from(found, chunks.file_size))
    except WrongManifest:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise WrongManifest(f"it is malformed: {type(error).__name__}: {error}") from None


def _segment_json(segment: RemoteSegment) -> dict[str, Any]:
    one = segment.segment_id
    partition = {"topicId": str(one.topic_id), "topicPartition": {"topic": one.topic, "partition": one.partition}}
    return {
        "remoteLogSegmentId": {"topicIdPartition": partition, "id": one.text},
        "startOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "maxTimestampMs": segment.max_timestamp_ms,
        "brokerId": segment.broker_id,
        "eventTimestampMs": segment.event_timestamp_ms,
        "segmentLeaderEpochs": {str(epoch): start for epoch, start in segment.leader_epochs},
    }


def _segment_from(found: Any, size: int) -> RemoteSegment:
    facts = found["remoteLogSegmentMetadata"]
    identity = facts["remoteLogSegmentId"]
    place = identity["topicIdPartition"]
    epochs = ((int(epoch), int(start)) for epoch, start in facts["segmentLeaderEpochs"].items())
    return RemoteSegment(
        RemoteSegmentId(
            TopicId.parse(place["topicId"]),
            str(place["topicPartition"]["topic"]),
            int(place["topicPartition"]["partition"]),
            _segment_uuid(identity["id"]),
        ),
        int(facts["startOffset"]),
        int(facts["endOffset"]),
        int(facts["brokerId"]),
        int(facts["maxTimestampMs"]),
        int(facts["eventTimestampMs"]),
        tuple(sorted(epochs)),
        size,
        state=RemoteSegmentState.COPY_SEGMENT_FINISHED,
        txn_index_empty=found["segmentIndexes"].get("transaction") is None,
    )


def _segment_uuid(text: str) -> UUID:
    return TopicId.parse(text).value
