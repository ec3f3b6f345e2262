"""RecordPrinter: prints the records of `consume` as text, JSON lines, values, Parquet, or in a given format."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.cli.errors import CommandError
from tailrace.cli.output import print_lines
from tailrace.cli.records.record_filter import record_filter
from tailrace.cli.records.record_format import RecordFormat, key_and_value
from tailrace.cli.records.record_text import json_record, text_record
from tailrace.client.visible_batches import Batch
from tailrace.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset, TopicPartition
from tailrace.model.topic_config import LONG_MAX
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.record import Record, iter_records, uncompressed_payload

if TYPE_CHECKING:
    from tailrace.spark.tables.files.parquet_records import ParquetRecords
    from tailrace.spark.typed.values.registry_values import RegistryValues


class RecordPrinter:
    """Prints the records that match the options, up to --max."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.left = LONG_MAX if options.max is None else options.max
        self._options = options
        self._key: bytes | None = None if options.key is None else options.key.encode()
        self._registry = None if options.schema_registry is None else _registry_values(options.schema_registry)
        self._matches = record_filter(options, None if self._registry is None else self._registry.plain)
        self._parquet = None if options.parquet is None else _parquet_records(options.parquet)
        self._format: RecordFormat | None = options.format
        if options.key_separator is not None:
            self._format = key_and_value(options.key_separator)

    def show(self, partition: TopicPartition, batch: Batch, start: Offset, end: Offset = LONG_MAX) -> Offset | None:
        """Print records from `start` to before `end`. Return the next offset if --max is reached, else None."""
        for record in _records(partition, batch, self._key):
            if start <= record.offset < end and self._matches(partition, record):
                self._show(partition, record, batch)
                self.left -= 1
                if not self.left:
                    return record.offset + 1
        return None

    def close(self) -> None:
        """Complete the output."""
        if self._parquet is not None:
            self._parquet.close()

    def _show(self, partition: TopicPartition, record: Record, batch: Batch) -> None:
        options = self._options
        if self._parquet is not None:
            self._parquet.add(partition, record)
            return
        if self._format is not None:
            sys.stdout.buffer.write(self._format(partition, record))
            return
        if options.values:
            sys.stdout.buffer.write((b"" if record.value is None else record.value) + b"\n")
            return
        found = record, batch if isinstance(batch, RecordBatch) else _MESSAGE_FACTS
        if options.json:
            print_lines(
                json_record(
                    found, options.encoding, partition=partition, with_more=options.more, decoder=self._registry
                )
            )
        else:
            print_lines(text_record(found, options.encoding, partition))


def _registry_values(url: str) -> RegistryValues:
    try:
        from tailrace.spark.typed.values.registry_values import RegistryValues
    except ImportError as error:
        raise CommandError(f"--schema-registry: {error}; install 'tailrace[avro,protobuf,s3]'") from None
    try:
        return RegistryValues(url)
    except ValueError as error:
        raise CommandError(f"--schema-registry: {error}") from None


def _parquet_records(path: str) -> ParquetRecords:
    try:
        from tailrace.spark.tables.files.parquet_records import ParquetRecords
    except ImportError as error:
        raise CommandError(f"--parquet: {error}; install 'tailrace[s3]'") from None
    try:
        return ParquetRecords(path)
    except OSError as error:
        raise CommandError(f"--parquet {path}: {error.strerror or error}") from error


class _MessageFacts:
    """Batch fields for messages of formats 0 and 1, which have neither producer nor epoch."""

    leader_epoch = NO_LEADER_EPOCH
    producer_id = NO_PRODUCER_ID
    producer_epoch = NO_PRODUCER_EPOCH


_MESSAGE_FACTS = _MessageFacts()


def _records(partition: TopicPartition, batch: Batch, key: bytes | None) -> Iterable[Record]:
    """Return the records of a batch, or none if their bytes do not contain a key that is searched for."""
    try:
        if key is not None and isinstance(batch, RecordBatch) and key not in bytes(uncompressed_payload(batch)):
            return ()
        return list(iter_records(batch)) if isinstance(batch, RecordBatch) else batch.records()
    except CorruptBatch as error:
        raise CommandError(f"{partition}: {batch!r} cannot be read: {error}", status=1) from error
