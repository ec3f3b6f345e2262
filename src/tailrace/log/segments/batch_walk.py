"""Walks a log file: batch headers only, or whole batches, in bounded memory.

Both walks read all three formats: v2 batches, and the v0 and v1 messages of old logs. There a message (or a wrapper
around a compressed set) takes the place of a batch and has the offset of its *last* record.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tailrace.log.disk.files import File
from tailrace.log.recovery import scan_kernels
from tailrace.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, Offset
from tailrace.records import header_kernels
from tailrace.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    PREFIX,
    CorruptBatch,
)

LEGACY_MIN_SIZE = {
    0: 26,
    1: 34,
}  # an empty message with its offset, length, CRC, magic, attributes, key and value sizes
_INT64 = Struct(">q")
_LEGACY_HEADER = Struct(">Ibb")  # CRC, magic, attributes
_LEGACY_TIMESTAMP_POSITION = 18

# If batches are small, one read gets all headers between two index entries of 4 KB. If they are large, a chunk would
# contain unused record bytes, and reading one header at a time is faster.
_HEADER_CHUNK = 8 * 1024
_SMALL_BATCH = 1024
_RUN_SIZE = 512 * 1024  # fits in a core's cache between reading and checking


class BatchHeader(NamedTuple):
    """The header of a batch of any format, with the fields of `header_kernels.scan_batches`."""

    position: int
    size: int
    base_offset: Offset  # equal to last_offset for v0 and v1, where only decoding gives the first
    last_offset: Offset
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def next_offset(self) -> Offset:
        return self.last_offset + 1


def parse_header(data: bytes | bytearray | memoryview, start: int, position: int, available: int) -> BatchHeader:
    """Return the header at data[start:] of a batch at `position` in its file, with `available` bytes from there to the
    end."""
    if available < LOG_OVERHEAD:
        raise CorruptBatch(f"{available} bytes follow the last batch, fewer than a batch's offset and length")
    offset, length = PREFIX.unpack_from(data, start)
    size = length + LOG_OVERHEAD
    if size < 26:
        raise CorruptBatch(f"batch length {length} is too small")
    if size > available:
        raise CorruptBatch(f"batch length gives {size} bytes, but only {available} follow")
    magic = data[start + MAGIC_POSITION]
    if magic == 2:
        if size < HEADER_SIZE:
            raise CorruptBatch(f"batch of {size} bytes is smaller than its header of {HEADER_SIZE}")
        _, _, epoch, _, crc, attributes, delta, *rest = HEADER.unpack_from(data, start)
        return BatchHeader(position, size, offset, offset + delta, epoch, 2, crc, attributes, *rest)
    if magic in (0, 1):
        if size < LEGACY_MIN_SIZE[magic]:
            raise CorruptBatch(f"message of {size} bytes is smaller than an empty one of {LEGACY_MIN_SIZE[magic]}")
        crc, _, attributes = _LEGACY_HEADER.unpack_from(data, start + LOG_OVERHEAD)
        timestamp = NO_TIMESTAMP if magic == 0 else _INT64.unpack_from(data, start + _LEGACY_TIMESTAMP_POSITION)[0]
        times = timestamp, timestamp
        return BatchHeader(
            position, size, offset, offset, NO_LEADER_EPOCH, magic, crc, attributes, *times, -1, -1, -1, -1
        )
    raise CorruptBatch(f"unknown magic {magic}")


def walk_headers(file: File, start: int, end: int) -> Iterator[BatchHeader]:
    """Yield the headers from byte `start` on. Raise CorruptBatch, with its position, for invalid bytes."""
    position = start
    chunk, chunk_start = b"", start
    chunk_size = HEADER_SIZE
    while position < end:
        inside = position - chunk_start
        needed = min(HEADER_SIZE, end - position)
        if inside + needed > len(chunk):
            chunk = file.read(position, min(chunk_size, end - position))
            chunk_start, inside = position, 0
            if len(chunk) < needed:
                raise CorruptBatch(
                    f"the file ends after {len(chunk)} of {needed} bytes", path=file.path, position=position
                )
        try:
            header = parse_header(chunk, inside, position, end - position)
        except CorruptBatch as error:
            raise error.at(file.path, position) from None
        yield header
        position += header.size
        chunk_size = _HEADER_CHUNK if header.size < _SMALL_BATCH else HEADER_SIZE


def find_header(file: File, start: int, end: int, offset: Offset) -> BatchHeader | None:
    """Return the first batch from byte `start` on that reaches `offset`. This is a faster `walk_headers`."""
    position = start
    chunk_size = HEADER_SIZE
    while position < end:
        chunk = file.read(position, min(chunk_size, end - position))
        inside = 0
        try:
            inside, size, _, _ = header_kernels.find_batch(chunk, 0, len(chunk), offset)
            if size and inside + HEADER_SIZE <= len(chunk):
                return parse_header(chunk, inside, position + inside, end - position - inside)
        except CorruptBatch as error:
            raise error.at(file.path, position + (error.position or inside)) from None
        if size or not inside:
            return next(walk_headers(file, position + inside, end))
        chunk_size = _HEADER_CHUNK if inside < _SMALL_BATCH else HEADER_SIZE
        position += inside
    if position > end:
        raise CorruptBatch(f"the last batch ends at {position}, after the end at {end}", path=file.path, position=start)
    return None


def read_runs(file: File, start: int, end: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the bytes from `start` on in pieces of whole batches, each with its position. A piece is valid until the
    next one.

    Raises CorruptBatch, with its position, for invalid bytes.
    """
    buffer = bytearray(min(_RUN_SIZE, max(end - start, 0)))
    position = start
    while position < end:
        wanted = min(len(buffer), end - position)
        got = file.read_into(position, memoryview(buffer)[:wanted])
        if got < wanted:
            raise CorruptBatch(f"the file ends after {got} of {wanted} bytes", path=file.path, position=position)
        whole = scan_kernels.whole_batches(buffer, got)
        if whole:
            yield position, memoryview(buffer)[:whole]
            position += whole
        else:
            try:
                header = parse_header(buffer, 0, position, end - position)
            except CorruptBatch as error:
                raise error.at(file.path, position) from None
            buffer = bytearray(header.size)


def read_batches(file: File, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches from byte `start` on with all their bytes. A batch's view is valid until the next one."""
    for position, run in read_runs(file, start, end):
        for inside, size, *fields in header_kernels.scan_batches(run, 0, len(run))[0]:
            yield BatchHeader(position + inside, size, *fields), run[inside : inside + size]
