"""The limit of the metadata that a client commits with an offset (offset.metadata.max.bytes)."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.coordinator.groups.group import TopicCommit
from tailrace.coordinator.offsets.committed_offsets import Verdict
from tailrace.model.errors import ErrorCode
from tailrace.model.java.java_hash import java_length


def split_by_metadata(topics: Sequence[TopicCommit], limit: int) -> tuple[list[TopicCommit], list[Verdict]]:
    """Return the topics with the partitions that may be committed, and the verdict on each topic."""
    kept: list[TopicCommit] = []
    verdicts: list[Verdict] = []
    for topic in topics:
        if not [None for one in topic.partitions if len(one[3]) > limit]:
            verdicts.append(ErrorCode.NONE)
            kept.append(topic)
            continue
        codes = [_metadata_error(metadata, limit) for _, _, _, metadata, _ in topic.partitions]
        partitions = [one for one, code in zip(topic.partitions, codes, strict=True) if code is ErrorCode.NONE]
        verdicts.append(codes)
        kept.append(topic._replace(partitions=partitions))
    return kept, verdicts


def _metadata_error(metadata: bytes, limit: int) -> ErrorCode:
    """Return OFFSET_METADATA_TOO_LARGE by length, counted in Java characters."""
    if len(metadata) > limit and java_length(metadata.decode()) > limit:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE
