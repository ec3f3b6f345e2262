"""The lag of a stream from Spark's progress reports: the number of unread offsets of each partition.

    partition_lags(query.lastProgress)       {orders-0: 0, orders-1: 512}

A Python source can report only the end offsets to Spark. The lag is computed from the offsets in a progress report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tailrace.model.ids import TopicPartition


def partition_lags(progress: Any) -> dict[TopicPartition, int]:
    """Return the lag of each partition of all sources at the start of the batch; empty without a report."""
    if progress is None:
        return {}
    report: Mapping[str, Any] = progress if isinstance(progress, Mapping) else json.loads(progress.json)
    lags: dict[TopicPartition, int] = {}
    for source in report["sources"]:
        read, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for partition, end in latest.items():
            lags[partition] = max(0, end - read.get(partition, 0))
    return lags


def _offsets(reported: Any) -> dict[TopicPartition, int]:
    """Parse the offsets of a report: an object, its JSON text, or None."""
    found = json.loads(reported) if isinstance(reported, str) else reported
    if not isinstance(found, Mapping):
        return {}
    return {
        TopicPartition(topic, int(number)): offset for topic, parts in found.items() for number, offset in parts.items()
    }
