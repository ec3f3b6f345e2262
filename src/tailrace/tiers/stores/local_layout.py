"""The names of Kafka's LocalTieredStorage: one folder for each partition, one file for each part of a segment.

<root>/kafka-tiered-storage/<topic>-<partition>-<topic id>/<first offset, 20 digits>-<segment id>.log
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tailrace.log.disk import file_names
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId
from tailrace.tiers.stores.remote_store import IndexKind

ROOT_FOLDER: Final = "kafka-tiered-storage"
EPOCHS: Final = ".leader_epoch_checkpoint"
SUFFIXES: Final = {
    IndexKind.OFFSET: file_names.OFFSET_INDEX,
    IndexKind.TIMESTAMP: file_names.TIME_INDEX,
    IndexKind.TRANSACTION: file_names.TRANSACTION_INDEX,
    IndexKind.LEADER_EPOCH: EPOCHS,
    IndexKind.PRODUCER_SNAPSHOT: file_names.PRODUCER_SNAPSHOT,
}
REQUIRED: Final = frozenset({file_names.LOG, *SUFFIXES.values()} - {file_names.TRANSACTION_INDEX})
_ID = "[A-Za-z0-9_-]{22}"
_FOLDER = re.compile(rf"(.+)-([0-9]{{1,10}})-({_ID})")
_FILE = re.compile(rf"([0-9]{{20}})-({_ID})(\.[a-z_]+)")
_PARTITION_MAX = 2**31 - 1
_OFFSET_MAX = 2**63 - 2


class TierFolder(NamedTuple):
    """The partition of a folder, and the id of its topic."""

    partition: TopicPartition
    topic_id: TopicId


class TierFile(NamedTuple):
    """The segment and the part that a file's name gives."""

    start_offset: Offset
    segment_id: str
    suffix: str


def partition_folder(one: RemoteSegmentId) -> str:
    return f"{one.topic}-{one.partition}-{one.topic_id}"


def segment_stem(segment: RemoteSegment) -> str:
    """Return the common start of the names of a segment's files."""
    return f"{segment.start_offset:020d}-{segment.segment_id.text}"


def parse_folder(name: str) -> TierFolder | None:
    """Return the partition of a folder, or None for any other folder."""
    found = _FOLDER.fullmatch(name)
    if found is None or int(found[2]) > _PARTITION_MAX:
        return None
    return TierFolder(TopicPartition(found[1], int(found[2])), TopicId.parse(found[3]))


def parse_file(name: str) -> TierFile | None:
    """Return the segment of a file, or None for any other file."""
    found = _FILE.fullmatch(name)
    if found is None or int(found[1]) > _OFFSET_MAX:
        return None
    return TierFile(int(found[1]), found[2], found[3])
