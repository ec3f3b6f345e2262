"""What Spark's progress reports say of a stream over the log: how many offsets of each partition wait to be read.

    partition_lags(query.lastProgress)       {orders-0: 0, orders-1: 512}

Spark lets a Python source report where the log ends and nothing else; the rest follows from the offsets in a report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tailrace.model.ids import TopicPartition


def partition_lags(progress: Any) -> dict[TopicPartition, int]:
    """The lag of each partition when its batch began, over all sources; nothing where there is no report yet."""
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
    """Offsets as a report has them: an object, its text, or nothing."""
    found = json.loads(reported) if isinstance(reported, str) else reported
    if not isinstance(found, Mapping):
        return {}
    return {
        TopicPartition(topic, int(number)): offset for topic, parts in found.items() for number, offset in parts.items()
    }
