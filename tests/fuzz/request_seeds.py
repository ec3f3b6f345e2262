"""Requests to begin with: every API in every version, as sensible clients and the comparison with Kafka send them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.registry import request_class
from tests.support.api_cases import cluster, configs, records, topics
from tests.support.api_cases.common import Case
from tests.unit.protocol.random_messages import random_message

NOW_MS = 1_700_000_000_000
TOPICS: dict[str, dict[str, str]] = {
    "orders": {},
    "compacted": {"cleanup.policy": "compact"},
    "timed": {"message.timestamp.type": "LogAppendTime"},
    "empty": {},
    "sequenced": {},
    "small": {"max.message.bytes": "1000", "segment.bytes": "1048576"},
    "with_dot": {},
}


def cases() -> Iterator[Case]:
    yield from topics.topic_cases()
    yield from topics.metadata_cases()
    yield from records.produce_cases(NOW_MS)
    yield from records.fetch_cases()
    yield from records.offset_cases(NOW_MS)
    yield from records.producer_id_cases()
    yield from configs.config_cases()
    yield from cluster.quota_cases()
    yield from cluster.cluster_cases()
    yield from topics.delete_topic_cases()


def request_frame(request: Any, version: int, correlation_id: int) -> bytes:
    header = RequestHeader(request.SCHEMA.api_key, version, correlation_id, "fuzz")
    return write_request_header(header) + bytes(request.encode(version))


def seed_frames(side: Any) -> list[bytes]:
    """Return the frames to begin with. `side` knows topic ids, as the sides of the comparison do."""
    frames = []
    for _, make in cases():
        request = make(side)
        row = API_TABLE[request.SCHEMA.api_key]
        for version in range(row.min_version, row.max_version + 1):
            try:
                frames.append(request_frame(request, version, len(frames)))
            except UnwritableMessage:
                continue
    for row in API_TABLE.values():
        name = request_class(row.key).SCHEMA.name
        for version in range(row.min_version, row.max_version + 1):
            for seed in range(2):
                message = random_message(name, version, seed, unknown_tags=True, modest=seed == 0)
                frames.append(request_frame(message, version, len(frames)))
    return frames
