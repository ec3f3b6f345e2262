"""The tasks of a profile: count the batches and records of a slice.

Batch headers have sizes, codecs, transactions and times. Records are decoded in the same pass, only for keys and sizes,
and not at all with `batches_only`. Every eighth compressed batch is decompressed once more, to measure the size of its
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.records import header_kernels
from tailrace.records.batch import CODEC_MASK, CONTROL_BIT, HEADER_SIZE, TRANSACTIONAL_BIT, Buffer, Codec
from tailrace.records.codecs.decompression import decompress
from tailrace.records.columnar.columns import AbortedRanges, RecordColumns
from tailrace.spark.jobs.place import as_job_errors
from tailrace.spark.jobs.profile.facts import CodecFacts, KeyFacts, LogFacts
from tailrace.spark.source.arrow_batches import arrow_batch, arrow_schema
from tailrace.spark.source.table_columns import KNOWN, wanted_bits
from tailrace.spark.source.transports.transport import Slice

TOP = 20
_COLUMNS = tuple(KNOWN[name] for name in ("key", "value", "timestamp"))
_SCHEMA = arrow_schema(_COLUMNS, (True, True, True))
_SAMPLE = 8
_KEYS_AT_ONCE = 1_000_000
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ProfileTask:
    group: int  # index of the partition
    place: int  # position of the slice in it
    slice: Slice
    is_first: bool  # the first slice of a partition counts a batch that begins before it
    batches_only: bool


@dataclass(slots=True)
class SliceFacts:
    facts: LogFacts
    keys: bytes | None  # an Arrow table: key, records, bytes, last_bytes, last_is_tombstone


def profile_slice(task: ProfileTask) -> Iterator[tuple[int, int, SliceFacts]]:
    with as_job_errors():
        profile = _SliceProfile(task)
        for _ in task.slice.feed(profile, fail_on_data_loss=True):
            profile.take()
        profile.take()
        yield task.group, task.place, SliceFacts(profile.facts, profile.packed_keys())


class _SliceProfile:
    """A taker of batches that counts their headers and passes them on to columns."""

    def __init__(self, task: ProfileTask) -> None:
        wanted = task.slice.range
        bits = 0 if task.batches_only else wanted_bits(_COLUMNS)
        self._columns = RecordColumns(bits, wanted.start, wanted.end, allocate=pa.allocate_buffer)
        self._task = task
        self._counted_to = wanted.start if not task.is_first else -1
        self._compressed = 0
        self._keys: list[Any] = []
        self._key_rows = 0
        self.facts = LogFacts()

    def leave_out(self, aborted: AbortedRanges) -> None:
        self._columns.leave_out(aborted)

    @property
    def next_offset(self) -> int:
        return self._columns.next_offset

    @property
    def is_done(self) -> bool:
        return self._columns.is_done

    @property
    def is_full(self) -> bool:
        return self._columns.is_full

    def skip_to(self, offset: int) -> None:
        self._columns.skip_to(offset)

    def put_batches(self, source: Buffer, start: int, end: int) -> int:
        stop = self._columns.put_batches(source, start, end)
        view = memoryview(source)
        for header in header_kernels.scan_batches(source, start, stop)[0]:
            # A batch that spans two slices is counted in the slice where it begins.
            if self._counted_to <= header[2] < self._columns.end_offset:
                self._counted_to = header[3] + 1
                self._count(header, view)
        return stop

    def _count(self, header: header_kernels.BatchFields, view: memoryview) -> None:
        position, size, base_offset, _, _, magic, _, attributes, _, max_timestamp, producer_id = header[:11]
        facts, count = self.facts, max(header[13], 0)
        is_control = magic == 2 and bool(attributes & CONTROL_BIT)
        facts.note_batch(size, is_control=is_control)
        if is_control:
            return
        facts.batch_sizes.add({size: 1})
        if magic == 2 and attributes & TRANSACTIONAL_BIT:
            is_aborted = any(first <= base_offset <= last for first, last in self._columns.aborted.get(producer_id, ()))
            facts.note_transactional(count, size, is_aborted=is_aborted)
            if is_aborted:
                return
        codec = Codec(attributes & CODEC_MASK)
        found = facts.codecs.setdefault(codec.name.lower(), CodecFacts())
        found.batches += 1
        found.bytes += size - HEADER_SIZE
        if magic == 2 and codec is not Codec.NONE and count and not self._task.batches_only:
            if self._compressed % _SAMPLE == 0:
                found.sampled += size - HEADER_SIZE
                found.sampled_plain += len(decompress(codec, view[position + HEADER_SIZE : position + size]))
            self._compressed += 1
        if self._task.batches_only:
            facts.count_records(count)
            facts.note_times(max_timestamp, max_timestamp, max_timestamp, max_timestamp)
            facts.times.add([(max_timestamp // 1000, count, size)])

    # Records

    def take(self) -> None:
        """Count the rows of the columns."""
        if self._task.batches_only or not self._columns.rows:
            return
        rows = arrow_batch(self._columns, _COLUMNS, _SCHEMA, self._task.slice.range.partition)
        self._columns.reset()
        key, value = rows.column("key"), rows.column("value")
        key_sizes = pc.fill_null(pc.binary_length(key), 0)
        value_sizes = pc.fill_null(pc.binary_length(value), 0)
        sizes = pc.add(key_sizes, value_sizes).cast(pa.int64())
        facts = self.facts
        facts.note_records(rows.num_rows, pc.sum(sizes).as_py(), tombstones=value.null_count, keyless=key.null_count)
        facts.key_sizes.add(_counts(key_sizes.filter(key.is_valid()) if key.null_count else key_sizes))
        facts.value_sizes.add(_counts(value_sizes.filter(value.is_valid()) if value.null_count else value_sizes))
        self._count_times(rows.column("timestamp").cast(pa.int64()), sizes)
        self._count_keys(key, sizes, value)

    def _count_times(self, micros: Any, sizes: Any) -> None:
        if len(micros) > 1:
            falls = pc.less(micros.slice(1), micros.slice(0, len(micros) - 1))
            self.facts.note_out_of_order(pc.sum(falls).as_py() or 0)
        bounds = pc.min_max(micros)
        times = (micros[0], micros[-1], bounds["min"], bounds["max"])
        self.facts.note_times(*[one.as_py() // 1000 for one in times])
        seconds = pc.floor(pc.divide(micros.cast(pa.float64()), float(_MILLION))).cast(pa.int64())
        table = pa.table({"second": seconds, "size": sizes})
        grouped = table.group_by("second").aggregate([("size", "count"), ("size", "sum")])
        self.facts.times.add(
            zip(*(grouped.column(name).to_pylist() for name in ("second", "size_count", "size_sum")), strict=True)
        )

    def _count_keys(self, key: Any, sizes: Any, value: Any) -> None:
        table = pa.table({"key": key, "size": sizes, "is_tombstone": value.is_null()})
        if key.null_count:
            table = table.filter(key.is_valid())
        found = table.group_by("key", use_threads=False).aggregate(
            [("size", "count"), ("size", "sum"), ("size", "last"), ("is_tombstone", "last")]
        )
        found = found.select(["key", "size_count", "size_sum", "size_last", "is_tombstone_last"])
        self._keys.append(found.rename_columns(list(_KEY_COLUMNS)))
        self._key_rows += found.num_rows
        if self._key_rows > _KEYS_AT_ONCE:
            self._keys = [merged_keys(self._keys)]
            self._key_rows = max(_KEYS_AT_ONCE // 2, self._keys[0].num_rows // 2)

    def packed_keys(self) -> bytes | None:
        if self._task.batches_only:
            return None
        return packed(merged_keys(self._keys))


_KEY_COLUMNS = ("key", "records", "bytes", "last_bytes", "last_is_tombstone")
_KEY_SCHEMA = pa.schema([
    ("key", pa.binary()), ("records", pa.int64()), ("bytes", pa.int64()), ("last_bytes", pa.int64()),
    ("last_is_tombstone", pa.bool_()),
])  # fmt: skip


def merged_keys(tables: Iterable[Any]) -> Any:
    """Merge tables of keys, earlier offsets first, into one table with each key once."""
    parts = [table.cast(_KEY_SCHEMA) for table in tables]
    if not parts:
        return _KEY_SCHEMA.empty_table()
    found = (
        pa.concat_tables(parts)
        .group_by("key", use_threads=False)
        .aggregate([("records", "sum"), ("bytes", "sum"), ("last_bytes", "last"), ("last_is_tombstone", "last")])
    )
    chosen = found.select(["key", "records_sum", "bytes_sum", "last_bytes_last", "last_is_tombstone_last"])
    return chosen.rename_columns(list(_KEY_COLUMNS)).cast(_KEY_SCHEMA)


def packed(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> Any:
    return pa.ipc.open_stream(data).read_all()


def key_facts(table: Any) -> KeyFacts:
    """Return the key statistics of a whole partition."""
    if not table.num_rows:
        return KeyFacts()
    records, size = pc.sum(table.column("records")).as_py(), pc.sum(table.column("bytes")).as_py()
    order = pc.select_k_unstable(table, TOP, sort_keys=[("records", "descending"), ("key", "ascending")])
    top = table.take(order).to_pylist()
    return KeyFacts(
        records,
        table.num_rows,
        records - table.num_rows,
        size - pc.sum(table.column("last_bytes")).as_py(),
        pc.sum(table.column("last_is_tombstone")).as_py(),
        [(one["key"], one["records"], one["bytes"]) for one in top],
    )


def merge_partition(group: int, slices: Iterable[SliceFacts]) -> tuple[LogFacts, KeyFacts | None]:
    """Merge the slices of a partition, in their order."""
    facts, tables = LogFacts(), []
    has_keys = False
    for one in slices:
        facts.merge(one.facts)
        if one.keys is not None:
            has_keys = True
            tables.append(unpacked(one.keys))
    return facts, key_facts(merged_keys(tables)) if has_keys else None


def _counts(sizes: Any) -> dict[int, int]:
    return {one["values"]: one["counts"] for one in pc.value_counts(sizes).to_pylist()}
