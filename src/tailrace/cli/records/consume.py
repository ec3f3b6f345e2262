"""`tailrace consume`: print the records of a topic as text, as JSON lines, or their values only.

Without --follow, partitions are read one after the other, each up to its end offset at the start of the command. With
--follow, all partitions are read together as records arrive; the order within a partition is kept.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from tailrace.cli.connection.connecting import chosen_partitions, chosen_topic, connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import warn
from tailrace.cli.records.group_consume import consume_group
from tailrace.cli.records.record_printer import RecordPrinter
from tailrace.cli.records.search_progress import SearchProgress
from tailrace.cli.records.start_place import Start, StartPlace
from tailrace.client.batches import FetchOptions, fetch, fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import OffsetOutOfRange
from tailrace.client.offsets import earliest_offsets, find_offsets, latest_offsets
from tailrace.client.visible_batches import IsolationLevel, next_offset
from tailrace.model.ids import Offset, TopicPartition


def run(options: argparse.Namespace) -> int:
    name = chosen_topic(options)
    if options.group is not None and options.partition:
        raise CommandError("--group and --partition exclude each other: the group assigns the partitions")
    if options.progress and not options.json:
        raise CommandError("--progress needs --json: the progress is printed as lines of JSON among the records")
    fetch_options = FetchOptions(isolation=IsolationLevel[options.isolation.upper()], max_bytes=8_388_608)
    with connected(options) as cluster:
        topic = cluster.topic(name)
        printer = RecordPrinter(options)
        if options.group is not None:
            place = options.start or StartPlace(Start.BEGINNING)
            starts = partial(_starts, cluster, place, fetch_options.isolation)
            target = options.group, topic.name
            consume_group(cluster, target, starts, fetch_options, printer, follow=options.follow)
            printer.close()
            return 0
        partitions = chosen_partitions(topic, options)
        bounds = _Bounds(cluster, partitions, options, fetch_options.isolation)
        if options.follow:
            _follow(cluster, bounds, fetch_options, printer)
        else:
            progress = SearchProgress(bounds.starts, bounds.ends) if options.progress else None
            for partition in partitions:
                if printer.left:
                    _read(cluster, partition, bounds, fetch_options, printer, progress)
            if progress is not None:
                progress.report()
        printer.close()
    return 0


class _Bounds:
    """The offsets where reading starts and ends in each partition, as of the start of the command."""

    def __init__(
        self,
        cluster: ClusterClient,
        partitions: list[TopicPartition],
        options: argparse.Namespace,
        isolation: IsolationLevel,
    ) -> None:
        earliest = earliest_offsets(cluster, partitions)
        self.ends = latest_offsets(cluster, partitions, isolation)
        default = StartPlace(Start.LATEST if options.follow else Start.BEGINNING)
        wanted = _offsets_of(options.start or default, cluster, earliest, self.ends, isolation)
        # `first` is the first offset to print. `starts` is the first offset to fetch, which must be inside the log.
        self.first = {partition: max(offset, earliest[partition]) for partition, offset in wanted.items()}
        self.starts = {partition: min(offset, self.ends[partition]) for partition, offset in self.first.items()}
        if options.start is not None and options.start.start is Start.OFFSET:
            self._warn_of_empty_ranges(options.start.number)

    def _warn_of_empty_ranges(self, offset: Offset) -> None:
        after = [f"{partition.partition} ends at {end}" for partition, end in self.ends.items() if offset > end]
        if after:
            more = f" and {len(after) - 3} more" if len(after) > 3 else ""
            warn(f"--from {offset} is after the end of partitions of the topic: {', '.join(after[:3])}{more}")


def _starts(
    cluster: ClusterClient, place: StartPlace, isolation: IsolationLevel, partitions: list[TopicPartition]
) -> dict[TopicPartition, Offset]:
    """Return the offset of a start place in each partition, limited to the partition's log."""
    earliest = earliest_offsets(cluster, partitions)
    ends = latest_offsets(cluster, partitions, isolation)
    wanted = _offsets_of(place, cluster, earliest, ends, isolation)
    return {one: min(max(offset, earliest[one]), ends[one]) for one, offset in wanted.items()}


def _offsets_of(
    place: StartPlace,
    cluster: ClusterClient,
    earliest: dict[TopicPartition, Offset],
    ends: dict[TopicPartition, Offset],
    isolation: IsolationLevel,
) -> dict[TopicPartition, Offset]:
    if place.start is Start.BEGINNING:
        return earliest
    if place.start is Start.LATEST:
        return ends
    if place.start is Start.OFFSET:
        return dict.fromkeys(ends, place.number)
    if place.start is Start.BEFORE_END:
        return {partition: end - place.number for partition, end in ends.items()}
    found = find_offsets(cluster, dict.fromkeys(ends, place.number), isolation)
    return {partition: ends[partition] if one is None else one.offset for partition, one in found.items()}


def _read(
    cluster: ClusterClient,
    partition: TopicPartition,
    bounds: _Bounds,
    fetch_options: FetchOptions,
    printer: RecordPrinter,
    progress: SearchProgress | None,
) -> None:
    start, end = bounds.starts[partition], bounds.ends[partition]
    while True:
        try:
            for batch in fetch_range(cluster, partition, start, end, fetch_options):
                printer.show(partition, batch, max(start, bounds.first[partition]), end)
                if progress is not None:
                    progress.note(partition, next_offset(batch))
                if not printer.left:
                    return
            return
        except OffsetOutOfRange as error:
            start = _skip_deleted(cluster, partition, error)


def _follow(cluster: ClusterClient, bounds: _Bounds, fetch_options: FetchOptions, printer: RecordPrinter) -> None:
    positions = dict(bounds.starts)
    while printer.left:
        try:
            found = fetch(cluster, positions, fetch_options)
        except OffsetOutOfRange as error:
            partition = next(partition for partition in positions if str(partition) == error.subject)
            positions[partition] = _skip_deleted(cluster, partition, error)
            continue
        for partition, fetched in found.items():
            for batch in fetched.batches(check_crcs=fetch_options.check_crcs):
                printer.show(partition, batch, max(positions[partition], bounds.first[partition]))
                if not printer.left:
                    return
            positions[partition] = fetched.next_position(positions[partition])
        sys.stdout.flush()  # a reader of the pipe gets the records now


def _skip_deleted(cluster: ClusterClient, partition: TopicPartition, error: OffsetOutOfRange) -> Offset:
    """Return the offset to resume at after records were deleted during the read."""
    earliest = earliest_offsets(cluster, [partition])[partition]
    if earliest <= error.offset:
        raise error
    warn(f"{partition}: offsets {error.offset} to {earliest - 1} were deleted during the read")
    return earliest
