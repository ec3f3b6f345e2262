"""RecordBatch: a view over one v2 batch's bytes. Records are decoded only on request.

The header is 61 bytes and never compressed:

    position  size  field                   position  size  field
    0         8     base offset             23        4     last offset delta
    8         4     batch length            27        8     base timestamp
    12        4     partition leader epoch  35        8     max timestamp
    16        1     magic (2)               43        8     producer id
    17        4     CRC-32C                 51        2     producer epoch
    21        2     attributes              53        4     base sequence
                                            57        4     record count

The batch length counts the bytes after it. The CRC covers everything from the attributes to the end, so the base offset
and the leader epoch, which only the broker knows, are set in place without a new CRC.

Attributes: bits 0-2 codec, bit 3 timestamp type (1 = log append time), bit 4 transactional, bit 5 control batch,
bit 6 the base timestamp is a delete horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import TypeAlias

from tailrace.records.codecs.crc32c import crc32c

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
LOG_OVERHEAD = 12  # base offset and length, with which every format starts
LENGTH_POSITION = 8
LEADER_EPOCH_POSITION = 12
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
CODEC_POSITION = 22  # the low byte of the attributes
LAST_OFFSET_DELTA_POSITION = 23
MAX_TIMESTAMP_POSITION = 35
PRODUCER_ID_POSITION = 43
RECORD_COUNT_POSITION = 57
assert HEADER.size == HEADER_SIZE

PREFIX = Struct(">qi")  # base offset, length
PLACE = Struct(">qii")  # base offset, length, leader epoch
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
KNOWN_BITS = 0x7F


class Codec(IntEnum):
    """The compression of a batch's records."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CorruptBatch(Exception):
    """Bytes that are not a valid record batch. The text gives the reason and, if known, the file and the position."""

    def __init__(self, reason: str, *, path: str | None = None, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.position = position

    def note_position(self, position: int) -> None:
        """Note the position of the batch in the bytes that were read."""
        self.position = position

    def at(self, path: str, position: int) -> CorruptBatch:
        """Return the same error with a file and a position."""
        return CorruptBatch(self.reason, path=path, position=position)

    def __str__(self) -> str:
        if self.path is None:
            return self.reason
        return f"{self.path} at position {self.position}: {self.reason}"


class RecordBatch:
    """One v2 batch: its header decoded, its bytes kept as they are.

    `view` spans exactly the batch. Setters write into it and so need a writable buffer.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
        "view",
    )

    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(self, view: memoryview) -> None:
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(view)
        self.size: int = length + LOG_OVERHEAD
        self.view = view

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & CODEC_MASK)

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & CODEC_MASK)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > -1

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return when the tombstones of this batch may be removed. The cleaner stores this time in the base
        timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Return the sequence number of the last record. Sequences wrap to zero after 2^31 - 1."""
        return -1 if self.base_sequence == -1 else increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def payload(self) -> memoryview:
        """The bytes of the records, compressed if the batch is."""
        return self.view[HEADER_SIZE:]

    def computed_crc(self) -> int:
        return int(crc32c(self.view[ATTRIBUTES_POSITION:]))

    def check(self) -> None:
        """Raise CorruptBatch if the size is impossible or the checksum does not match."""
        if self.size < HEADER_SIZE:
            raise CorruptBatch(f"batch of {self.size} bytes is smaller than its header of {HEADER_SIZE}")
        actual = self.computed_crc()
        if actual != self.crc:
            raise CorruptBatch(f"checksum does not match: stored crc={self.crc:#010x}, computed crc={actual:#010x}")

    def place_at(self, base_offset: int) -> None:
        """Note the offset that the batch gets in the log. Its bytes are not changed."""
        self.base_offset = base_offset

    def set_offset_and_epoch(self, base_offset: int, leader_epoch: int) -> None:
        """Set the batch's place in the log. The checksum covers neither field."""
        PLACE.pack_into(self.view, 0, base_offset, self.size - LOG_OVERHEAD, leader_epoch)
        self.base_offset = base_offset
        self.leader_epoch = leader_epoch

    def set_max_timestamp(self, max_timestamp: int, *, log_append_time: bool) -> None:
        """Set timestamp type and largest timestamp. The checksum is computed again only if one of them changed.

        In that case undefined attribute bits are cleared, as in Kafka.
        """
        if self.max_timestamp == max_timestamp and self.is_log_append_time == log_append_time:
            return
        known = self.attributes & KNOWN_BITS & ~TIMESTAMP_TYPE_BIT
        self.attributes = known | (TIMESTAMP_TYPE_BIT if log_append_time else 0)
        self.view[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2] = self.attributes.to_bytes(2, "big", signed=True)
        _INT64.pack_into(self.view, MAX_TIMESTAMP_POSITION, max_timestamp)
        self.max_timestamp = max_timestamp
        self.crc = self.computed_crc()
        _UINT32.pack_into(self.view, CRC_POSITION, self.crc)

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}..{self.last_offset}, {self.record_count} records, {self.size} B)"
        )


def increment_sequence(sequence: int, by: int) -> int:
    """Return a sequence number plus `by`. Sequence numbers wrap to zero after 2^31 - 1."""
    return (sequence + by) & 0x7FFFFFFF


def split_batches(data: Buffer) -> Iterator[RecordBatch]:
    """Yield the v2 batches that follow each other in `data`. Raise CorruptBatch for bytes that are not a
    whole batch."""
    view = memoryview(data)
    position, end = 0, len(view)
    while position < end:
        if end - position < HEADER_SIZE:
            raise CorruptBatch(f"{end - position} bytes follow the last batch; a header has {HEADER_SIZE}")
        length = _INT32.unpack_from(view, position + LENGTH_POSITION)[0]
        size = length + LOG_OVERHEAD
        if size < HEADER_SIZE or position + size > end:
            raise CorruptBatch(f"batch length gives {size} bytes, but only {end - position} follow")
        yield RecordBatch(view[position : position + size])
        position += size
