"""Frames to send repeatedly, and the positions of fields in them and in their responses.

Kafka's own clients send Produce v13 and Fetch v17 since 4.1: topics by id, flexible encoding.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Sequence
from typing import Any, Final

from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import FetchRequest, ProduceRequest
from tailrace.records.builder import BatchBuilder

PRODUCE_VERSION: Final = 13
FETCH_VERSION: Final = 17
CLIENT_ID: Final = "bench"

# Positions of the error codes in a response of one topic and partition, after its size.
PRODUCE_ERROR_AT: Final = (27,)
FETCH_ERROR_AT: Final = (9, 37)


def frame(request: Any, version: int) -> bytes:
    content = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, CLIENT_ID)) + request.encode(
        version
    )
    return struct.pack(">i", len(content)) + content


def batch(size: int, record_size: int = 1_000, seed: int = 0) -> bytes:
    """Return one batch of about `size` bytes with current timestamps."""
    chance = random.Random(seed)
    builder = BatchBuilder()
    now_ms = time.time_ns() // 1_000_000
    for number in range(max(size // record_size, 1)):
        builder.append(now_ms, b"key%05d" % number, chance.randbytes(max(min(record_size, size) - 20, 1)))
    return builder.build()


def produce(topic_id: bytes, records: bytes, *, partition: int = 0, acks: int = -1) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=partition, records=records)
    topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[data])
    return frame(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic]), PRODUCE_VERSION)


def fetch(
    topic_id: bytes,
    offsets: Sequence[tuple[int, int]],
    *,
    max_bytes: int,
    max_wait_ms: int = 500,
    session_id: int = 0,
    session_epoch: int = -1,
) -> bytes:
    """Return a Fetch of (partition, offset) pairs, without a session unless one is given."""
    partitions = [
        FetchRequest.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1
        )
        for partition, offset in offsets
    ]
    topics = [FetchRequest.FetchTopic(topic_id=topic_id, partitions=partitions)] if partitions else []
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max(max_bytes, 52_428_800),
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
    )
    return frame(request, FETCH_VERSION)


def offset_place(topic_id: bytes) -> int:
    """Return the position of the offset in a Fetch frame of one partition."""
    one, other = (fetch(topic_id, [(0, offset)], max_bytes=1) for offset in (0, 0x7F7F7F7F7F7F7F7F))
    return next(index for index, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


def epoch_place() -> int:
    """Return the position of the session epoch in a Fetch frame."""
    one, other = (fetch(bytes(16), [], max_bytes=1, session_id=1, session_epoch=epoch) for epoch in (0, 0x7F7F7F7F))
    return next(index for index, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
