"""RemoteStore: the interface of a store of remote segments, the files of a segment, and the errors of stores.

A store is shared by threads. Its methods wait for a disk or a network, so the broker calls them beside its loop.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from tailrace.tiers.remote_segment import RemoteSegment


class IndexKind(enum.Enum):
    """The files of a segment beside its log."""

    OFFSET = enum.auto()
    TIMESTAMP = enum.auto()
    PRODUCER_SNAPSHOT = enum.auto()
    TRANSACTION = enum.auto()
    LEADER_EPOCH = enum.auto()


class RemoteStorageError(Exception):
    """A store that failed. The text names the segment or the object, and the reason."""


class RetriableRemoteStorageError(RemoteStorageError):
    """A failure that is not an error of the store, such as a limit of its rate. The caller may try again later."""


class RemoteResourceNotFound(RemoteStorageError):
    """A segment or an index that the store does not have."""


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The local files of a sealed segment, as paths, and its leader epochs as the bytes of a checkpoint file.

    `producer_snapshot` is the snapshot at the end of the segment. `leader_epochs` has all epochs from the start of the
    log to the end of the segment.
    """

    log: str
    offset_index: str
    time_index: str
    transaction_index: str | None
    producer_snapshot: str
    leader_epochs: bytes


class RemoteStore(Protocol):
    def copy_segment(self, segment: RemoteSegment, files: SegmentFiles, timeout_ms: int) -> bytes | None:
        """Copy the files of a segment. Return custom metadata to keep with the segment's metadata, if there is any.

        If the copy is not complete after `timeout_ms`, it ends with RemoteStorageError. After an error the store may
        have a part of the files, which `delete_segment` removes.
        """

    def fetch_segment(self, segment: RemoteSegment, start: int, end: int | None = None) -> bytes:
        """Return the bytes of the log from position `start` to `end`, exclusive; None: to the end of the segment.

        The result is shorter only at the end of the segment. Raise RemoteResourceNotFound if there is no such segment.
        """

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        """Return an index as a whole. Raise RemoteResourceNotFound if the segment has none of this kind."""

    def delete_segment(self, segment: RemoteSegment) -> None:
        """Delete all files of a segment, also of one that was copied in part. Do nothing if there are none."""


def fetch_range(store: RemoteStore, segment: RemoteSegment, start: int, end: int) -> bytes:
    """Return the bytes of a segment from `start` to `end`, or to its end. Raise RemoteStorageError if some are missing,
    because the object in the store is not complete."""
    end = min(end, segment.size)
    if end <= start:
        return b""
    data = store.fetch_segment(segment, start, end)
    if len(data) < end - start:
        raise RemoteStorageError(
            f"remote segment {segment.segment_id.text}: the store returned {len(data)} of {end - start} bytes at "
            f"position {start}; the segment has {segment.size}"
        )
    return data
