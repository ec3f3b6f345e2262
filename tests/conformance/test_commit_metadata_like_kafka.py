"""The limit offset.metadata.max.bytes at Apache Kafka and at Tailrace: the same commits are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import OffsetCommitRequest
from tests.conformance.test_groups_like_kafka import SETTINGS, make_twins, start_with_groups
from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("limit", [10, 200])  # a limit below and one above the longest metadata sent by default
def test_offset_commit_above_the_metadata_limit_is_refused(
    kafka_broker: Callable[..., KafkaBroker], limit: int
) -> None:
    settings = {**SETTINGS, "offset.metadata.max.bytes": str(limit)}
    twins, _ = make_twins(start_with_groups(kafka_broker, settings), settings)
    half = limit // 2
    try:
        for metadata in (
            "x" * limit,
            "x" * (limit + 1),
            "ä" * limit,
            "ä" * (limit + 1),
            "😀" * half,
            "😀" * (half + 1),
        ):
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=0, committed_offset=5, committed_metadata=metadata
            )
            topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[partition])
            for version in (7, 8, 9):
                answers = twins.step("a", OffsetCommitRequest(group_id="with-notes", topics=[topic]), version)
                (code,) = (one["errorCode"] for one in answers["a"]["topics"][0]["partitions"])
                is_refused = len(metadata.encode("utf-16-le")) // 2 > limit
                assert code == (ErrorCode.OFFSET_METADATA_TOO_LARGE if is_refused else ErrorCode.NONE)
    finally:
        twins.close()
