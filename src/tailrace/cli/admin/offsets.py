"""`tailrace offsets`: first and last offsets of partitions, and the offset of a time."""

from __future__ import annotations

import argparse
from typing import Any

from tailrace.cli.connection.connecting import chosen_partitions, connected
from tailrace.cli.output import json_document, print_lines, table, time_text
from tailrace.client.offsets import FoundOffset, OffsetSpec, earliest_offsets, find_offsets, latest_offsets
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import TopicPartition

Found = dict[TopicPartition, FoundOffset | None]


def run(options: argparse.Namespace) -> int:
    isolation = IsolationLevel[options.isolation.upper()]
    with connected(options) as cluster:
        if options.topic:
            topics = [cluster.topic(name) for name in dict.fromkeys(options.topic)]
        else:
            topics = [topic for topic in cluster.topics() if not topic.is_internal]
        partitions = [partition for topic in topics for partition in chosen_partitions(topic, options)]
        earliest = earliest_offsets(cluster, partitions)
        latest = latest_offsets(cluster, partitions, isolation)
        lookups: list[tuple[str, Found]] = []
        if options.at is not None:
            found = find_offsets(cluster, dict.fromkeys(partitions, options.at), isolation)
            lookups.append(("at", found))
        if options.max_timestamp:
            found = find_offsets(cluster, dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
            lookups.append(("max timestamp", found))
    if options.json:
        print_lines(json_document({"partitions": [_json(p, earliest[p], latest[p], lookups) for p in partitions]}))
        return 0
    heads = ["<TOPIC", "PARTITION", "EARLIEST", "LATEST", "SPAN"]
    for name, _ in lookups:
        heads += [name.upper(), "<TIME"]
    rows = []
    for partition in partitions:
        row: list[object] = [*partition, earliest[partition], latest[partition]]
        row.append(latest[partition] - earliest[partition])
        for _, found in lookups:
            one = found[partition]
            row += (None, None) if one is None else (one.offset, time_text(one.timestamp))
        rows.append(row)
    print_lines(*table(heads, rows))
    return 0


def _json(partition: TopicPartition, earliest: int, latest: int, lookups: list[tuple[str, Found]]) -> dict[str, Any]:
    fields: dict[str, Any] = {**partition._asdict(), "earliest": earliest, "latest": latest}
    for name, found in lookups:
        one = found[partition]
        key = "maxTimestamp" if name == "max timestamp" else name
        fields[key] = None if one is None else {"offset": one.offset, "timestamp": one.timestamp}
    return fields
