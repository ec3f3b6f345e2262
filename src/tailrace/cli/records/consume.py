"""`tailrace consume`: print the records of a topic as text, as JSON lines, or their values only.

Without --follow, partitions are read one after the other, each up to its end offset at the start of the command. With
--follow, all partitions are read together as records arrive; the order within a partition is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from tailrace.cli.connecting import chosen_partitions, connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import print_lines, warn
from tailrace.cli.records.record_filter import record_filter
from tailrace.cli.records.record_text import json_record, text_record
from tailrace.cli.records.start_place import Start, StartPlace
from tailrace.client.batches import FetchOptions, fetch, fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import OffsetOutOfRange
from tailrace.client.offsets import earliest_offsets, find_offsets, latest_offsets
from tailrace.client.visible_batches import Batch, IsolationLevel
from tailrace.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset, TopicPartition
from tailrace.model.topic_config import LONG_MAX
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.record import Record, iter_records


def run(options: argparse.Namespace) -> int:
    fetch_options = FetchOptions(isolation=IsolationLevel[options.isolation.upper()], max_bytes=8_388_608)
    with connected(options) as cluster:
        partitions = chosen_partitions(cluster.topic(options.topic), options)
        bounds = _Bounds(cluster, partitions, options, fetch_options.isolation)
        printer = _Printer(options, bounds.first)
        if options.follow:
            _follow(cluster, bounds, fetch_options, printer)
        else:
            for partition in partitions:
                if printer.left:
                    _read(cluster, partition, bounds, fetch_options, printer)
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
    printer: _Printer,
) -> None:
    start, end = bounds.starts[partition], bounds.ends[partition]
    while True:
        try:
            for batch in fetch_range(cluster, partition, start, end, fetch_options):
                printer.show(partition, batch, start, end)
                if not printer.left:
                    return
            return
        except OffsetOutOfRange as error:
            start = _skip_deleted(cluster, partition, error)


def _follow(cluster: ClusterClient, bounds: _Bounds, fetch_options: FetchOptions, printer: _Printer) -> None:
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
                printer.show(partition, batch, positions[partition])
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


class _Printer:
    """Prints the records that match the options, up to --max."""

    def __init__(self, options: argparse.Namespace, first: dict[TopicPartition, Offset]) -> None:
        self.left = LONG_MAX if options.max is None else options.max
        self._options = options
        self._first = first
        self._matches = record_filter(options)

    def show(self, partition: TopicPartition, batch: Batch, start: Offset, end: Offset = LONG_MAX) -> None:
        start = max(start, self._first[partition])
        for record in _records(partition, batch):
            if start <= record.offset < end and self._matches(record):
                self._show(partition, record, batch)
                self.left -= 1
                if not self.left:
                    return

    def _show(self, partition: TopicPartition, record: Record, batch: Batch) -> None:
        options = self._options
        if options.values:
            sys.stdout.buffer.write((b"" if record.value is None else record.value) + b"\n")
            return
        found = record, batch if isinstance(batch, RecordBatch) else _MESSAGE_FACTS
        if options.json:
            print_lines(json_record(found, options.encoding, partition=partition, with_more=options.more))
        else:
            print_lines(text_record(found, options.encoding, partition))


class _MessageFacts:
    """Batch fields for messages of formats 0 and 1, which have neither producer nor epoch."""

    leader_epoch = NO_LEADER_EPOCH
    producer_id = NO_PRODUCER_ID
    producer_epoch = NO_PRODUCER_EPOCH


_MESSAGE_FACTS = _MessageFacts()


def _records(partition: TopicPartition, batch: Batch) -> Iterable[Record]:
    try:
        return list(iter_records(batch)) if isinstance(batch, RecordBatch) else batch.records()
    except CorruptBatch as error:
        raise CommandError(f"{partition}: {batch!r} cannot be read: {error}", status=1) from error
