"""The lag of groups, in offsets and in seconds, and `tailrace groups lag`.

A lag in seconds is the age of the oldest record that the group has not read. It is read from the record itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_document, json_line, print_lines, table
from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError, OffsetOutOfRange, UnknownTopic
from tailrace.client.groups.group_description import DescribedGroup, GroupMember
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.client.groups.groups import describe_group, list_groups
from tailrace.client.groups.share_groups import SHARE_PROTOCOL, share_offsets
from tailrace.client.offsets import latest_offsets
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.record import iter_records


class PartitionLag(NamedTuple):
    """A partition with a group's committed offset, its lag, and the members that read it."""

    partition: TopicPartition
    committed: Offset | None
    end: Offset | None  # None for a deleted topic
    lag: int | None
    members: tuple[GroupMember, ...]  # a share group can have several
    oldest_unread: int | None = None  # the timestamp of the first record that is not read; None if there is none

    def lag_s(self, now_ms: int) -> float | None:
        """Return the lag in seconds, or None if it is unknown."""
        if self.lag is None:
            return None
        if not self.lag:
            return 0.0
        return None if self.oldest_unread is None else max(now_ms - self.oldest_unread, 0) / 1_000


class TopicLag(NamedTuple):
    """The lag of a group in one topic."""

    group: str
    topic: str
    partitions: int
    lag: int
    max_lag: int
    seconds: float | None  # of the partition that is furthest behind


def run_lag(options: argparse.Namespace) -> int:
    if options.watch is not None:
        return _watch(options)
    rows = _read_lags(options)
    worst = max((row.max_lag for row in rows), default=0)
    if options.json:
        print_lines(json_document(_lags_json(rows, with_times=options.times) | {"maxLag": worst}))
    elif rows:
        heads = ["<GROUP", "<TOPIC", "PARTITIONS", "LAG", "LARGEST"]
        cells = [row if options.times else row[:-1] for row in rows]
        print_lines(*table([*heads, "SECONDS"] if options.times else heads, cells))
    else:
        print_lines("no group has committed offsets")
    return 1 if options.max is not None and worst > options.max else 0


def _watch(options: argparse.Namespace) -> int:
    """Print the lags at an interval, one JSON object per line, until Ctrl-C. An error is a line as well."""
    if not options.json:
        raise CommandError("--watch needs --json: one line per reading")
    while True:
        moment = {"time": int(time.time() * 1000)}
        try:
            print_lines(json_line({**moment, **_lags_json(_read_lags(options), with_times=options.times)}))
        except CommandError as error:
            print_lines(json_line({**moment, "lags": [], "problem": str(error)}))
        sys.stdout.flush()
        time.sleep(options.watch)


def _read_lags(options: argparse.Namespace) -> list[TopicLag]:
    with connected(options) as cluster:
        names = options.group or [group.group_id for group in list_groups(cluster)]
        looked = [read_group(cluster, name, with_times=options.times) for name in dict.fromkeys(names)]
    now_ms = int(time.time() * 1000)
    rows = []
    for group, lags in looked:
        for topic in dict.fromkeys(one.partition.topic for one in lags):
            here = [one for one in lags if one.partition.topic == topic]
            known = [one.lag for one in here if one.lag is not None]
            ages = [age for one in here if (age := one.lag_s(now_ms)) is not None]
            oldest = max(ages, default=None)
            rows.append(TopicLag(group.group_id, topic, len(known), sum(known), max(known, default=0), oldest))
    return rows


def _lags_json(rows: list[TopicLag], *, with_times: bool) -> dict[str, Any]:
    keys = ("group", "topic", "partitions", "lag", "maxLag", "lagSeconds")
    return {"lags": [dict(zip(keys if with_times else keys[:-1], row, strict=False)) for row in rows]}


def committed_or_started(
    coordinators: Coordinators, group_id: str, is_share: bool
) -> dict[TopicPartition, Offset | None]:
    """Return a group's committed offsets; None where a share group has not started to read."""
    if is_share:
        return {one: found.start for one, found in share_offsets(coordinators, group_id).items()}
    return {one: noted.offset for one, noted in committed_offsets(coordinators, group_id).items()}


def read_group(
    cluster: ClusterClient, group_id: str, *, with_times: bool = False
) -> tuple[DescribedGroup, list[PartitionLag]]:
    coordinators = Coordinators(cluster)
    group = describe_group(coordinators, group_id)
    readers: dict[TopicPartition, tuple[GroupMember, ...]] = {}
    for member in group.members:
        for partition in member.partitions:
            readers[partition] = (*readers.get(partition, ()), member)
    shared = share_offsets(coordinators, group_id) if group.type == SHARE_PROTOCOL else None
    committed = committed_or_started(coordinators, group_id, False) if shared is None else {}
    committed |= {one: found.start for one, found in (shared or {}).items()}
    partitions = sorted({*committed, *readers})
    ends = latest_offsets(cluster, [one for one in partitions if _exists(cluster, one)])

    def lag(partition: TopicPartition) -> int | None:
        if shared is not None:  # some records after the start offset are acknowledged; the broker knows how many
            return shared[partition].lag if partition in shared else None
        offset, end = committed.get(partition), ends.get(partition)
        return None if offset is None or end is None else max(end - offset, 0)

    lags = [PartitionLag(one, committed.get(one), ends.get(one), lag(one), readers.get(one, ())) for one in partitions]
    if with_times:
        behind = {one.partition: one.committed for one in lags if one.lag and one.committed is not None}
        times = oldest_unread(cluster, behind)
        lags = [one._replace(oldest_unread=times.get(one.partition)) for one in lags]
    return group, lags


def oldest_unread(cluster: ClusterClient, positions: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, int]:
    """Return the timestamp of the first record at or after each position. Only one batch of each partition is read."""
    found: dict[TopicPartition, int] = {}
    for partition, position in positions.items():
        options = FetchOptions(max_wait_ms=0, partition_max_bytes=1)
        try:
            batches = fetch(cluster, {partition: position}, options)[partition].batches()
            first = next(iter(batches), None)
            if first is None:
                continue
            records = iter_records(first) if isinstance(first, RecordBatch) else first.records()
            moments = (record.timestamp for record in records if record.offset >= position)
            found[partition] = next(moments, first.max_timestamp if isinstance(first, RecordBatch) else -1)
        except (OffsetOutOfRange, ClientError, CorruptBatch, KeyError):
            continue  # deleted meanwhile, or not readable with these rights: the age is unknown
    return found


def _exists(cluster: ClusterClient, partition: TopicPartition) -> bool:
    try:
        return partition in cluster.topic(partition.topic).topic_partitions
    except UnknownTopic:
        return False
