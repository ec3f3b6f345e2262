"""Messages of formats 0 and 1, from logs that are older than record batches and from old clients.

    position  size  field                       position  size  field
    0         8     offset                      17        1     attributes: bits 0-2 codec, bit 3 timestamp type (v1)
    8         4     size of the rest            18        8     timestamp (v1 only)
    12        4     CRC-32 of the rest          18 or 26  4     key length (-1 = none), key
    16        1     magic (0 or 1)              …         4     value length (-1 = none), value

A compressed set is one message, the wrapper. Its value is the compressed messages, and its offset is that of the last
one inside. Inside a v1 wrapper offsets are relative (0, 1, 2 …, with gaps where compaction removed some). Inside a v0
wrapper they are absolute. If a wrapper has log-append time, its timestamp applies to every message inside.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from struct import Struct

from tailrace.model.ids import NO_TIMESTAMP
from tailrace.records.batch import (
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    PREFIX,
    TIMESTAMP_TYPE_BIT,
    Buffer,
    Codec,
    CorruptBatch,
)
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.decompression import DecompressedTooLarge, decompress
from tailrace.records.record import Record, TimestampType

MIN_SIZE = {0: 26, 1: 34}  # a message without key and value
_CRC_POSITION = 12
_ATTRIBUTES_POSITION = 17
_TIMESTAMP_POSITION = 18
_KEY_POSITION = {0: 18, 1: 26}

_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")


class Message:
    """One message, or one wrapper: a view over its bytes. Setters need a writable buffer."""

    __slots__ = ("attributes", "magic", "offset", "size", "timestamp", "view")

    def __init__(self, view: memoryview) -> None:
        self.offset, length = PREFIX.unpack_from(view)
        self.size = length + LOG_OVERHEAD
        self.magic = view[MAGIC_POSITION]
        if self.magic not in MIN_SIZE:
            raise CorruptBatch(f"magic {self.magic} is not that of a message")
        if self.size < MIN_SIZE[self.magic] or self.size > len(view):
            raise CorruptBatch(f"message of magic {self.magic} has length {self.size}, but {len(view)} bytes follow")
        self.view = view[: self.size]
        self.attributes = view[_ATTRIBUTES_POSITION]
        self.timestamp = NO_TIMESTAMP if self.magic == 0 else _INT64.unpack_from(view, _TIMESTAMP_POSITION)[0]

    @property
    def codec(self) -> Codec:
        code = self.attributes & CODEC_MASK
        if code > Codec.ZSTD:
            raise CorruptBatch(f"unknown compression codec {code}")
        return Codec(code)

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME

    @property
    def key(self) -> bytes | None:
        return self._field(_KEY_POSITION[self.magic])[0]

    @property
    def value(self) -> bytes | None:
        return self._field(self._field(_KEY_POSITION[self.magic])[1])[0]

    def _field(self, position: int) -> tuple[bytes | None, int]:
        if position + 4 > self.size:
            raise CorruptBatch(f"message at offset {self.offset} ends inside a field")
        length = _INT32.unpack_from(self.view, position)[0]
        position += 4
        if length < 0:
            return None, position
        if length > self.size - position:
            raise CorruptBatch(f"message at offset {self.offset} has a field of {length} bytes that runs past its end")
        return bytes(self.view[position : position + length]), position + length

    def check(self) -> None:
        """Raise CorruptBatch if the checksum does not match."""
        stored = _UINT32.unpack_from(self.view, _CRC_POSITION)[0]
        actual = zlib.crc32(self.view[MAGIC_POSITION:])
        if stored != actual:
            raise CorruptBatch(f"checksum does not match: stored crc={stored:#010x}, computed crc={actual:#010x}")

    def records(self, max_size: int | None = None) -> list[Record]:
        """Return the message as a record, or the records inside a wrapper."""
        if not self.is_compressed:
            return [self.record(self.offset, self.timestamp, self.timestamp_type)]
        return [inner.record(offset, time, kind) for inner, offset, time, kind in self.inner(max_size)]

    def inner(
        self, max_size: int | None = None, max_count: int | None = None
    ) -> list[tuple[Message, int, int, TimestampType]]:
        """Return the messages inside a wrapper, with the offset, timestamp and timestamp type that the wrapper gives
        them.

        Raises DecompressedTooLarge if there are more than `max_count`, or if they have more than `max_size` bytes.
        """
        if self.codec == Codec.ZSTD:
            raise CorruptBatch(f"a wrapper of magic {self.magic} cannot be compressed with zstd")
        packed = self.value
        if packed is None:
            raise CorruptBatch(f"wrapper at offset {self.offset} has no value")
        inside = _inner_messages(decompress(self.codec, packed, self.magic, max_size))
        messages = list(inside if max_count is None else islice(inside, max_count + 1))
        if max_count is not None and len(messages) > max_count:
            raise DecompressedTooLarge(f"wrapper at offset {self.offset} has more than {max_count} messages inside")
        if not messages:
            raise CorruptBatch(f"wrapper at offset {self.offset} has no messages inside")
        shift = 0
        if self.magic == 1 and self.offset != 0:  # if a producer sends zero, the inner offsets are used
            shift = self.offset - messages[-1].offset
            if shift < 0:
                raise CorruptBatch(
                    f"wrapper has offset {self.offset}, but the last message inside has {messages[-1].offset}"
                )
        result = []
        for message in messages:
            if message.is_compressed:
                raise CorruptBatch("a message inside a wrapper is itself compressed")
            if message.magic == 0:
                kind, timestamp = TimestampType.NO_TIMESTAMP, NO_TIMESTAMP
            else:
                kind = self.timestamp_type
                timestamp = self.timestamp if kind == TimestampType.LOG_APPEND_TIME else message.timestamp
            result.append((message, message.offset + shift, timestamp, kind))
        return result

    def record(self, offset: int, timestamp: int, timestamp_type: TimestampType) -> Record:
        """Return the message as a record with another offset and time."""
        key, position = self._field(_KEY_POSITION[self.magic])
        return Record(offset, timestamp, timestamp_type, key, self._field(position)[0])


def _inner_messages(data: bytes) -> Iterator[Message]:
    """Yield the messages of a decompressed set. An incomplete last one is ignored."""
    view = memoryview(data)
    position = 0
    while len(view) - position >= LOG_OVERHEAD:
        length = PREFIX.unpack_from(view, position)[1]
        if length < MIN_SIZE[0] - LOG_OVERHEAD:
            raise CorruptBatch(f"message inside a wrapper has a length of {length} bytes, less than an empty message")
        stop = position + LOG_OVERHEAD + length
        if stop > len(view):
            return
        yield Message(view[position:stop])
        position = stop


def check_message(view: memoryview) -> None:
    """Raise CorruptBatch unless the message (or wrapper) in `view` is complete and its checksum matches."""
    Message(view).check()


def split_messages(data: Buffer) -> Iterator[Message]:
    """Yield the consecutive messages and wrappers in `data`."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        if len(view) - position < MIN_SIZE[0]:
            raise CorruptBatch(f"{len(view) - position} bytes follow the last message, less than a message has")
        message = Message(view[position:])
        yield message
        position += message.size


def iter_messages(data: Buffer) -> Iterator[Record]:
    """Yield the records of the messages in `data`, including those inside wrappers."""
    for message in split_messages(data):
        yield from message.records()


def encode_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """Encode one message. With a codec it is a wrapper, and `value` is the compressed set."""
    if magic not in MIN_SIZE:
        raise ValueError(f"magic {magic} is not that of a message; it is 0 or 1")
    if timestamp < 0 and timestamp != NO_TIMESTAMP:
        raise ValueError(f"timestamp {timestamp} is negative")
    log_append_time = magic == 1 and timestamp_type == TimestampType.LOG_APPEND_TIME
    body = bytearray((magic, codec | (TIMESTAMP_TYPE_BIT if log_append_time else 0)))
    if magic == 1:
        body += _INT64.pack(timestamp)
    for field in (key, value):
        body += _INT32.pack(-1 if field is None else len(field))
        body += field or b""
    return PREFIX.pack(offset, len(body) + 4) + _UINT32.pack(zlib.crc32(body)) + bytes(body)


def build_messages(
    records: Iterable[Record],
    *,
    magic: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time_ms: int = NO_TIMESTAMP,
) -> bytes:
    """Encode records as messages at their own offsets, or with a codec as one wrapper around them."""
    if codec == Codec.ZSTD:
        raise ValueError(f"messages of magic {magic} cannot be compressed with zstd")
    log_append_time = timestamp_type == TimestampType.LOG_APPEND_TIME
    base_offset: int | None = None
    last_offset: int | None = None
    max_timestamp = NO_TIMESTAMP
    out = bytearray()
    for record in records:
        if record.headers:
            raise ValueError(f"messages of magic {magic} have no headers")
        if last_offset is not None and record.offset <= last_offset:
            raise ValueError(f"offset {record.offset} does not follow {last_offset}")
        last_offset = record.offset
        if base_offset is None:
            base_offset = record.offset
        timestamp = log_append_time_ms if log_append_time else record.timestamp
        max_timestamp = max(max_timestamp, timestamp)
        relative = magic == 1 and codec != Codec.NONE
        offset = record.offset - base_offset if relative else record.offset
        out += encode_message(magic, offset, timestamp, record.key, record.value, timestamp_type=timestamp_type)
    if last_offset is None or codec == Codec.NONE:
        return bytes(out)
    timestamp = log_append_time_ms if log_append_time else max_timestamp
    if magic == 0:
        timestamp = NO_TIMESTAMP
    packed = compress(codec, out, level, magic=magic)
    return encode_message(magic, last_offset, timestamp, None, packed, codec=codec, timestamp_type=timestamp_type)
