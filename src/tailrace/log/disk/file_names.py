"""Every name and suffix in a log directory.

A partition's folder is `topic-N`. Its segments are named by their base offset in twenty digits:

    00000000000000170000.log          the record batches
    00000000000000170000.index        offset → byte position, sparse
    00000000000000170000.timeindex    timestamp → offset, sparse
    00000000000000170000.txnindex     aborted transactions; exists only if there are some
    00000000000000170000.snapshot     producer states up to that offset

While files change they have another suffix: `.cleaned` (a compacted segment being written), `.swap` (a finished one
being put in place), `.deleted` (waiting for removal). A folder to be deleted is `topic-N.<id>-delete`. A partition that
is not in the metadata is `topic-N.<id>-stray`. A copy for a move between directories is `topic-N.<id>-future`.
"""

from __future__ import annotations

import re

from tailrace.model.ids import Offset, TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
PRODUCER_SNAPSHOT = ".snapshot"

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"

DELETE_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FUTURE_FOLDER = "-future"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES = "meta.properties"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
DIRECTORY_LOCK = ".lock"
REMOTE_INDEXES = "remote-log-index-cache"

CLUSTER_METADATA_TOPIC = "__cluster_metadata"

_SEGMENT_FILE = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.cleaned|\.swap|\.deleted)?")
# A topic's name has no white space: the lines of checkpoints are split there.
_FOLDER = re.compile(r"(\S+)-([0-9]+)")
_MARKED_FOLDER = re.compile(r"(\S+)-([0-9]+)\.(\S+)-(delete|stray|future)")
_LONGEST_NAME = 255
_ID_LENGTH = 32
_OFFSET_MAX = 2**63 - 2  # one below the largest offset, because another must follow
_PARTITION_MAX = 2**31 - 1


def segment_file(base_offset: Offset, kind: str, suffix: str = "") -> str:
    return f"{base_offset:020d}{kind}{suffix}"


def parse_segment_file(name: str) -> tuple[Offset, str, str] | None:
    """Return (base offset, kind, suffix) of a segment's file, or None for any other file."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match[1]) > _OFFSET_MAX:
        return None
    return int(match[1]), match[2], match[3] or ""


def parse_partition_folder(name: str) -> TopicPartition | None:
    """Return the partition of a folder named `topic-N` or a marked form, or None for any other folder."""
    found = _MARKED_FOLDER.fullmatch(name) or _FOLDER.fullmatch(name)
    if found is None or int(found[2]) > _PARTITION_MAX:
        return None
    return TopicPartition(found[1], int(found[2]))


def marked_folder(partition: TopicPartition, unique_id: str, mark: str) -> str:
    """Return a folder's name with the mark `-delete` or `-stray`. A long topic is truncated to keep the name valid."""
    ending = f"-{partition.partition}.{unique_id}{mark}"
    return partition.topic[: _LONGEST_NAME - len(ending)] + ending


def is_too_long_to_mark(partition: TopicPartition) -> bool:
    """Return True if a marked folder cannot contain the whole name of the topic."""
    return len(str(partition)) + len(".") + _ID_LENGTH + len(FUTURE_FOLDER) > _LONGEST_NAME


def is_marked(name: str, mark: str) -> bool:
    return name.endswith(mark) and _MARKED_FOLDER.fullmatch(name) is not None
