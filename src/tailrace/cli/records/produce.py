"""`tailrace produce`: write lines of standard input, or of a file, as records of a topic.

A batch is sent when it is full. All batches are sent when the input is idle. So typed lines
are sent at once, and piped lines in large batches. The next batch of a partition is sent when the previous one is
acknowledged, so the lines of a partition keep their order.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tailrace.cli.connection.connecting import chosen_topic, connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines
from tailrace.cli.records.produce_lines import NewRecord, line_groups, line_reader
from tailrace.client.cluster.metadata import TopicMetadata
from tailrace.client.errors import ClientError
from tailrace.client.producing.partitioner import partition_of_key
from tailrace.client.producing.producer import NO_OFFSET, Acks, BatchProducer, NotDelivered, Produced
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder

_ACKS = {"all": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}


def run(options: argparse.Namespace) -> int:
    name = chosen_topic(options)
    if options.key is not None and options.json:
        raise CommandError("--key and --json exclude each other: a JSON line has its own key")
    read = line_reader(options)
    key = None if options.key is None else options.key.encode()
    with connected(options) as cluster, _input(options) as descriptor:
        topic = cluster.topic(name)
        if options.partition is not None:
            topic.partition(options.partition)  # raises an error if it does not exist
        producer = BatchProducer(cluster, acks=_ACKS[options.acks])
        writer = LineWriter(producer, topic, Codec[options.compression.upper()], options.batch_bytes)
        number = 0
        try:
            for lines, is_input_idle in line_groups(descriptor):
                for line in lines:
                    number += 1
                    record = read(line)
                    partition = record.partition if options.partition is None else options.partition
                    writer.add(record._replace(partition=partition, key=record.key if key is None else key))
                if is_input_idle:
                    writer.send_all()
            writer.send_all()
        except ValueError as error:
            raise _incomplete(f"line {number}: {error}", writer) from None
        except ClientError as error:
            raise _incomplete(str(error), writer) from error
    if not options.quiet:
        _report(options, name, writer)
    return 0


def _incomplete(reason: str, writer: LineWriter) -> CommandError:
    return CommandError(f"{reason} ({count_text(writer.written, 'record was', 'records were')} written)", status=1)


@contextmanager
def _input(options: argparse.Namespace) -> Iterator[int]:
    if options.file is None:
        yield sys.stdin.fileno()
        return
    with open(options.file, "rb") as file:
        yield file.fileno()


@dataclass
class Written:
    """The records written to one partition."""

    records: int = 0
    first_offset: Offset = NO_OFFSET
    last_offset: Offset = NO_OFFSET


class LineWriter:
    """Collects records into one batch per partition, and sends the batches."""

    def __init__(self, producer: BatchProducer, topic: TopicMetadata, codec: Codec, batch_bytes: int) -> None:
        self.results: dict[int, Written] = {}
        self._producer = producer
        self._topic = topic
        self._codec = codec
        self._batch_bytes = batch_bytes
        self._builders: dict[int, BatchBuilder] = {}
        self._sticky_partition: int | None = None  # the partition for records without a key, until its batch is sent

    @property
    def written(self) -> int:
        return sum(result.records for result in self.results.values())

    def add(self, record: NewRecord) -> None:
        """Add a record; send its batch if that is full. Raise ValueError if the topic lacks the record's partition."""
        number = self._partition_of(record)
        builder = self._builders.get(number)
        if builder is None:
            builder = self._builders[number] = BatchBuilder(codec=self._codec)
        moment = time.time_ns() // 1_000_000 if record.timestamp is None else record.timestamp
        builder.append(moment, record.key, record.value, record.headers)
        if builder.uncompressed_size >= self._batch_bytes:
            self._send({number: self._builders.pop(number)})

    def send_all(self) -> None:
        if self._builders:
            waiting, self._builders = self._builders, {}
            self._send(waiting)

    def _partition_of(self, record: NewRecord) -> int:
        count = len(self._topic.partitions)
        if record.partition is not None:
            if record.partition >= count:
                raise ValueError(
                    f"topic {self._topic.name} has no partition {record.partition}; it has 0 to {count - 1}"
                )
            return record.partition
        if record.key is not None:
            return partition_of_key(record.key, count)
        if self._sticky_partition is None:
            self._sticky_partition = random.randrange(count)
        return self._sticky_partition

    def _send(self, builders: dict[int, BatchBuilder]) -> None:
        if self._sticky_partition in builders:
            self._sticky_partition = None
        batches = {TopicPartition(self._topic.name, number): one.build() for number, one in builders.items()}
        try:
            delivered = self._producer.send(batches)
        except NotDelivered as error:
            self._add_to_results(error.delivered, builders)
            raise
        self._add_to_results(delivered, builders)

    def _add_to_results(self, delivered: dict[TopicPartition, Produced], builders: dict[int, BatchBuilder]) -> None:
        for partition, produced in delivered.items():
            count = builders[partition.partition].record_count
            result = self.results.setdefault(partition.partition, Written())
            result.records += count
            if produced.base_offset != NO_OFFSET:
                if result.first_offset == NO_OFFSET:
                    result.first_offset = produced.base_offset
                result.last_offset = produced.base_offset + count - 1


def _report(options: argparse.Namespace, topic: str, writer: LineWriter) -> None:
    results = sorted(writer.results.items())
    if options.json:
        partitions: list[dict[str, Any]] = [
            {
                "partition": number,
                "records": result.records,
                "firstOffset": None if result.first_offset == NO_OFFSET else result.first_offset,
                "lastOffset": None if result.last_offset == NO_OFFSET else result.last_offset,
            }
            for number, result in results
        ]
        print_lines(json_document({"topic": topic, "records": writer.written, "partitions": partitions}))
        return
    if not results:
        print_lines("no records written: the input was empty")
    for number, result in results:
        where = f"at offsets {result.first_offset} to {result.last_offset}"
        if result.first_offset == NO_OFFSET:
            where = "sent without acknowledgement"
        elif result.first_offset == result.last_offset:
            where = f"at offset {result.first_offset}"
        print_lines(f"{topic}-{number}: {count_text(result.records, 'record')} {where}")
