"""Fast paths for a follower's Fetch request and its response, which are the most frequent messages between brokers.

The bytes are those of the compiled messages. A request is a FetchRequest. A response with nothing but records and
watermarks is read as a PlainAnswer, which has the fields that a follower needs, by the same names. A response with an
error, a diverging epoch or another leader, and a malformed one, is read as a FetchResponse.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Any, Final, NamedTuple

from tailrace.protocol.messages import FetchRequest, FetchResponse
from tailrace.protocol.primitives import uvarint

VERSIONS: Final = range(15, 19)  # The follower's id is in a tagged field, and topics have ids.

_BEGIN: Final = Struct(">iiibii")  # max wait, min and max bytes, isolation, session id and epoch
_PARTITION_REQUEST: Final = Struct(">iiqiqiB")  # index, leader epoch, offset, last epoch, log start, max bytes, tags
_END: Final = Struct(">BBBBiqB")  # no rack; one tag: replica id and epoch
_REPLICA_STATE: Final = (1, 1, 1, 13)
_ANSWER: Final = Struct(">ihiB")  # throttle time, error, session id, topic count
_TOPIC: Final = Struct(">16sB")  # id, partition count
# Index, error, high watermark, last stable offset, log start, aborted transactions, preferred replica.
_PARTITION_RESPONSE: Final = Struct(">ihqqqBi")
_ONE_BYTE: Final = 0x7F  # the largest compact length in one byte


class ReplicaFetchRequest(FetchRequest):
    __slots__ = ()

    def write(self, parts: list[Any], version: int) -> None:
        if version not in VERSIONS:
            super().write(parts, version)
            return
        text = bytearray(
            _BEGIN.pack(
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
                self.session_id,
                self.session_epoch,
            )
        )
        text += uvarint(len(self.topics) + 1)
        for topic in self.topics:
            text += topic.topic_id
            text += uvarint(len(topic.partitions) + 1)
            for one in topic.partitions:
                text += _PARTITION_REQUEST.pack(
                    one.partition,
                    one.current_leader_epoch,
                    one.fetch_offset,
                    one.last_fetched_epoch,
                    one.log_start_offset,
                    one.partition_max_bytes,
                    0,
                )
            text.append(0)
        text += uvarint(len(self.forgotten_topics_data) + 1)
        for gone in self.forgotten_topics_data:
            text += gone.topic_id
            text += uvarint(len(gone.partitions) + 1)
            text += struct.pack(f">{len(gone.partitions)}iB", *gone.partitions, 0)
        state = self.replica_state
        text += _END.pack(*_REPLICA_STATE, state.replica_id, state.replica_epoch, 0)
        parts.append(text)


class PlainPartition(NamedTuple):
    """The response for one partition without an error."""

    partition_index: int
    high_watermark: int
    log_start_offset: int
    records: memoryview | None
    error_code: int = 0
    diverging_epoch: Any = FetchResponse.EpochEndOffset.DEFAULT


class PlainTopic(NamedTuple):
    topic_id: bytes
    partitions: list[PlainPartition]


class PlainAnswer(NamedTuple):
    session_id: int
    responses: list[PlainTopic]
    error_code: int = 0


def read_replica_answer(frame: memoryview, version: int, position: int) -> Any:
    """Return a PlainAnswer if possible, otherwise a FetchResponse. Raise ProtocolError if the frame is neither."""
    answer = _read_plain(frame, position) if version in VERSIONS else None
    return FetchResponse.decode(frame, version, position) if answer is None else answer


def _read_plain(frame: memoryview, position: int) -> PlainAnswer | None:
    responses: list[PlainTopic] = []
    try:
        _, error, session_id, topics = _ANSWER.unpack_from(frame, position)
        if error or not 1 <= topics <= _ONE_BYTE:
            return None
        position += _ANSWER.size
        for _ in range(topics - 1):
            topic_id, count = _TOPIC.unpack_from(frame, position)
            if not 1 <= count <= _ONE_BYTE:
                return None
            position += _TOPIC.size
            reported: list[PlainPartition] = []
            for _ in range(count - 1):
                index, error, high_watermark, _, log_start, aborted, _ = _PARTITION_RESPONSE.unpack_from(
                    frame, position
                )
                if error or aborted > 1:
                    return None
                start, size = _length(frame, position + _PARTITION_RESPONSE.size)
                position = start + max(size, 0)
                if frame[position]:
                    return None
                records = frame[start:position] if size >= 0 else None
                reported.append(PlainPartition(index, high_watermark, log_start, records))
                position += 1
            if frame[position]:
                return None
            position += 1
            responses.append(PlainTopic(topic_id, reported))
        if frame[position] or position + 1 != len(frame):
            return None
    except (struct.error, IndexError):
        return None
    return PlainAnswer(session_id, responses)


def _length(frame: memoryview, position: int) -> tuple[int, int]:
    """Return the start and the length of bytes. The length is -1 for null."""
    value = 0
    for shift in range(0, 35, 7):
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return position, value - 1
    raise IndexError("a compact length has at most five bytes")
