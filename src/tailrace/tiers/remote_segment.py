"""RemoteSegment: the metadata of one segment in a remote store, with the fields of Kafka's record of it."""

from __future__ import annotations

import base64
import enum
import uuid
from dataclasses import dataclass

from tailrace.model.ids import BrokerId, LeaderEpoch, Offset, TopicId


class RemoteSegmentState(enum.IntEnum):
    """The state of a remote segment. Its records can be read only in COPY_SEGMENT_FINISHED."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


@dataclass(frozen=True, slots=True)
class RemoteSegmentId:
    """The identity of a remote segment. Every attempt to copy a segment has an id of its own."""

    topic_id: TopicId
    topic: str
    partition: int
    id: uuid.UUID

    @property
    def text(self) -> str:
        """The segment's own id as Kafka writes it: 22 characters of URL-safe base64."""
        return base64.urlsafe_b64encode(self.id.bytes).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """The metadata of a remote segment. `leader_epochs` has the epochs inside the segment, with their first offsets."""

    segment_id: RemoteSegmentId
    start_offset: Offset
    end_offset: Offset  # the last offset, inclusive
    broker_id: BrokerId
    max_timestamp_ms: int
    event_timestamp_ms: int
    leader_epochs: tuple[tuple[LeaderEpoch, Offset], ...]
    size: int
    custom_metadata: bytes | None = None
    state: RemoteSegmentState = RemoteSegmentState.COPY_SEGMENT_STARTED
    txn_index_empty: bool = False  # True: the segment certainly has no transaction index
