"""Where a share group begins in a partition that it has never read: share.auto.offset.reset."""

from __future__ import annotations

import re
from typing import Final

from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.replication.partition import Partition

BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+)(?:[.,](?P<part>\d{0,9}))?S)?)?",
    re.IGNORECASE,
)
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


def first_start_offset(partition: Partition, reset: str, now_ms: int) -> int:
    if reset == "earliest":
        return partition.log.log_start_offset
    if reset == "latest":
        return partition.log.high_watermark
    found = find_offset(partition.log, now_ms - duration_ms(reset.removeprefix(BY_DURATION)))
    if found is None or found.offset >= partition.log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE, f"Offset for timestamp not found for topic partition: {partition.key}"
        )
    return found.offset


def duration_ms(text: str) -> int:
    """What Java reads as a duration, in milliseconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{text} is no ISO 8601 duration")
    total = sum(int(found[name]) * size for name, size in _MS.items() if found[name])
    if found["part"]:
        fraction = int(found["part"].ljust(9, "0")) // 1_000_000
        total += -fraction if found["seconds"].startswith("-") else fraction
    return -total if found["sign"] == "-" else total
