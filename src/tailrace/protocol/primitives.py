"""The protocol's primitive types, and arrays of them.

    int8 … int64, uint16, uint32   big-endian                    float64   big-endian
    bool                           one byte, 0 or not            uuid      16 bytes
    uvarint                        7 bits per byte, low bits first; the top bit means that more bytes follow; at most 5
    string, bytes, records, array  a length, then the content; a length of -1 is null
        plain                      string: int16, others: int32
        compact                    a uvarint that is one more than the length, 0 is null
    tagged fields                  uvarint count, then for each uvarint tag, uvarint size, content; tags ascend

`Reader` and `Writer` handle one value at a time, for data without a schema. Messages with a schema are read and written
by the functions of `compiler`, which use the functions here.

A length is compared with the bytes that follow before any memory is allocated for it.

Invalid UTF-8 becomes U+FFFD, as in Kafka. Three bytes may replace one, so a string can grow while it is decoded. A
string that would then exceed its length field is refused. Every decoded string can therefore be encoded again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from struct import Struct
from typing import Final, TypeAlias, TypeVar

from tailrace.protocol.errors import MalformedMessage, TooManyElements, UnwritableMessage

Buffer: TypeAlias = bytes | bytearray | memoryview
Tags: TypeAlias = tuple[tuple[int, bytes], ...]
T = TypeVar("T")

FORMATS: Final = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d",
    "uuid": "16s",
}  # fmt: skip
SIZES: Final = {kind: Struct(f">{code}").size for kind, code in FORMATS.items()}
STRING_MAX: Final = 0x7FFF
STRING_SAFE: Final = STRING_MAX // 3  # a string of up to this size fits even if each byte becomes U+FFFD
ELEMENTS_UNLIMITED: Final = 1 << 62
UVARINT_BYTES_MAX: Final = 5
BYTE: Final = tuple(bytes((value,)) for value in range(128))

# Most arrays are short (replicas, partitions). The layouts of short arrays are kept, those of longer ones are made on
# use.
ARRAYS_KEPT: Final = 32
ARRAYS: Final = {
    kind: tuple(Struct(f">{count}{code}") for count in range(ARRAYS_KEPT))
    for kind, code in FORMATS.items()
    if kind != "uuid"
}


# ------------------------------------------------------------------------------------------------------------- varints


def uvarint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Return the value of a uvarint whose first byte means that more bytes follow, and its end."""
    byte = buffer[position]
    if byte < 0x80:  # most lengths have two bytes
        return first & 0x7F | byte << 7, position + 1
    value = first & 0x7F | (byte & 0x7F) << 7
    for shift in (14, 21, 28):
        position += 1
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
    raise MalformedMessage("uvarint", f"is longer than {UVARINT_BYTES_MAX} bytes", position)


def uvarint(value: int) -> bytes:
    """Encode a uvarint."""
    if not 0 <= value <= 0xFFFFFFFF:
        raise UnwritableMessage(f"{value} does not fit an unsigned varint of 32 bits")
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def compact_string_length(length_and_one: int) -> bytes:
    """Encode the length of a compact string, which is written as one more than the length."""
    if length_and_one > STRING_MAX + 1:
        raise UnwritableMessage(f"a string of {length_and_one - 1} bytes is longer than {STRING_MAX}")
    return uvarint(length_and_one)


# ------------------------------------------------------------------------------------------------------------- strings


def read_text(what: str, chunk: bytes, position: int) -> str:
    """Decode a string. Raise MalformedMessage if replacing its invalid bytes makes it too long to be written again."""
    text = chunk.decode("utf-8", "replace")
    if len(chunk) > STRING_SAFE and len(text.encode()) > STRING_MAX:
        raise MalformedMessage(what, f"has a string that is not UTF-8 and would exceed {STRING_MAX} bytes", position)
    return text


# -------------------------------------------------------------------------------------------------------------- arrays


def too_many_elements(what: str, position: int) -> TooManyElements:
    return TooManyElements(what, "has more array elements than a request may have", position)


def read_numbers(kind: str, buffer: Buffer, position: int, count: int) -> tuple[list[int], int]:
    """Return `count` numbers (or bools) of one type, and their end."""
    stop = position + SIZES[kind] * count
    if stop > len(buffer):
        raise MalformedMessage(f"array of {count} {kind}", "is longer than the bytes that follow", position)
    layout = Struct(f">{count}{FORMATS[kind]}")
    return list(layout.unpack_from(buffer, position)), stop


def write_numbers(kind: str, values: Sequence[int]) -> bytes:
    return Struct(f">{len(values)}{FORMATS[kind]}").pack(*values)


def read_uuids(buffer: Buffer, position: int, count: int) -> tuple[list[bytes], int]:
    stop = position + 16 * count
    if stop > len(buffer):
        raise MalformedMessage(f"array of {count} uuid", "is longer than the bytes that follow", position)
    return [bytes(buffer[start : start + 16]) for start in range(position, stop, 16)], stop


def write_uuids(values: Sequence[bytes]) -> bytes:
    for value in values:
        if len(value) != 16:
            raise UnwritableMessage(f"a uuid has 16 bytes, not {len(value)}")
    return b"".join(values)


_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


def read_chunks(
    buffer: Buffer, position: int, count: int, is_string: bool, is_compact: bool
) -> tuple[list[bytes], int]:
    """Return `count` strings (undecoded) or bytes, and their end. None of them may be null."""
    chunks = []
    end = len(buffer)
    for _ in range(count):
        start = position
        if is_compact:
            length = buffer[position]
            position += 1
            if length > 0x7F:
                length, position = uvarint_tail(buffer, position, length)
            length -= 1
        elif is_string:
            (length,) = _INT16.unpack_from(buffer, position)
            position += 2
        else:
            (length,) = _INT32.unpack_from(buffer, position)
            position += 4
        if length < 0 or (is_string and length > STRING_MAX) or length > end - position:
            raise MalformedMessage("array element", f"has length {length}", start)
        chunks.append(bytes(buffer[position : position + length]))
        position += length
    return chunks, position


def read_strings(buffer: Buffer, position: int, count: int, is_compact: bool) -> tuple[list[str], int]:
    chunks, position = read_chunks(buffer, position, count, True, is_compact)
    return [read_text("array element", chunk, position) for chunk in chunks], position


def write_chunks(values: Sequence[bytes], is_string: bool, is_compact: bool) -> bytes:
    written: list[bytes] = []
    for value in values:
        if is_compact:
            length = compact_string_length(len(value) + 1) if is_string else uvarint(len(value) + 1)
        else:
            length = (_INT16 if is_string else _INT32).pack(len(value))
        written += (length, value)
    return b"".join(written)


def write_strings(values: Sequence[str], is_compact: bool) -> bytes:
    return write_chunks([value.encode() for value in values], True, is_compact)


# ------------------------------------------------------------------------------------------------------- tagged fields


def read_tags(what: str, buffer: Buffer, position: int, count: int) -> tuple[Tags, int]:
    """Return `count` unknown tagged fields, and their end."""
    tags = []
    for _ in range(count):
        tag = buffer[position]
        position += 1
        if tag > 0x7F:
            tag, position = uvarint_tail(buffer, position, tag)
        size = buffer[position]
        position += 1
        if size > 0x7F:
            size, position = uvarint_tail(buffer, position, size)
        if size > len(buffer) - position:
            raise MalformedMessage(what, f"tagged field {tag} is longer than the bytes that follow", position)
        tags.append((tag, bytes(buffer[position : position + size])))
        position += size
    return tuple(tags), position


def write_tags(known: Sequence[tuple[int, bytes]], unknown: Sequence[tuple[int, bytes]] = ()) -> bytes:
    """Encode a struct's tagged fields in ascending order."""
    tags = [*known, *unknown]
    if unknown:
        tags.sort(key=lambda tag: tag[0])
        for (tag, _), (following, _) in pairwise(tags):
            if tag == following:
                raise UnwritableMessage(f"tagged field {tag} occurs twice")
    written = [uvarint(len(tags))]
    for tag, content in tags:
        written += (uvarint(tag), uvarint(len(content)), content)
    return b"".join(written)


# --------------------------------------------------------------------------------------------------- one at a time


class Reader:
    """Reads values one after the other. Errors are MalformedMessage with the position."""

    __slots__ = ("_buffer", "_what", "position")

    def __init__(self, buffer: Buffer, position: int = 0, *, what: str = "value") -> None:
        self._buffer = buffer
        self._what = what
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self._buffer) - self.position

    def malformed(self, reason: str) -> MalformedMessage:
        return MalformedMessage(self._what, reason, self.position)

    def number(self, kind: str) -> int:
        """Read a number, bool or uuid. `kind` is its type in a schema."""
        return self._fixed(ARRAYS[kind][1])

    def int8(self) -> int:
        return self.number("int8")

    def int16(self) -> int:
        return self.number("int16")

    def int32(self) -> int:
        return self.number("int32")

    def int64(self) -> int:
        return self.number("int64")

    def _fixed(self, layout: Struct) -> int:
        try:
            value: int = layout.unpack_from(self._buffer, self.position)[0]
        except struct.error:
            raise self.malformed(f"ends within {layout.size} bytes") from None
        self.position += layout.size
        return value

    def uuid(self) -> bytes:
        return self.take(16)

    def take(self, length: int) -> bytes:
        """Read `length` bytes."""
        if not 0 <= length <= self.remaining:
            raise self.malformed(f"needs {length} bytes where {self.remaining} remain")
        self.position += length
        return bytes(self._buffer[self.position - length : self.position])

    def uvarint(self) -> int:
        try:
            value = self._buffer[self.position]
            if value < 0x80:
                self.position += 1
            else:
                value, self.position = uvarint_tail(self._buffer, self.position + 1, value)
        except IndexError:
            raise self.malformed("ends within a varint") from None
        return value

    def varint(self) -> int:
        """Read a zigzag varint of 32 bits."""
        value = self.uvarint() & 0xFFFFFFFF
        return (value >> 1) ^ -(value & 1)

    def chunk(self, *, string: bool, compact: bool) -> bytes | None:
        """Read the content of a string or of bytes; None for null."""
        start = self.position
        length = self.uvarint() - 1 if compact else self.int16() if string else self.int32()
        if length < 0:
            return None
        if string and length > STRING_MAX:
            self.position = start
            raise self.malformed(f"has a string of {length} bytes, more than {STRING_MAX}")
        return self.take(length)

    def string(self, *, compact: bool = False) -> str | None:
        chunk = self.chunk(string=True, compact=compact)
        return None if chunk is None else read_text(self._what, chunk, self.position)

    def blob(self, *, compact: bool = False) -> bytes | None:
        return self.chunk(string=False, compact=compact)

    def array(self, read: Callable[[], T], *, compact: bool = False) -> list[T] | None:
        """Read an array whose elements `read` reads. Every element has at least one byte."""
        count = self.uvarint() - 1 if compact else self.int32()
        if count < 0:
            return None
        if count > self.remaining:
            raise self.malformed(f"has an array of {count} where {self.remaining} bytes remain")
        return [read() for _ in range(count)]

    def tags(self) -> Tags:
        count = self.uvarint()
        try:
            tags, self.position = read_tags(self._what, self._buffer, self.position, count)
        except IndexError:
            raise self.malformed("ends within its tagged fields") from None
        return tags


class Writer:
    """Writes values one after the other. Errors are UnwritableMessage."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written = bytearray()

    def getvalue(self) -> bytes:
        return bytes(self._written)

    def number(self, kind: str, value: int) -> None:
        """Write a number or bool. `kind` is its type in a schema."""
        try:
            self._written += ARRAYS[kind][1].pack(value)
        except struct.error:
            raise UnwritableMessage(f"{value!r} is not {kind}") from None

    def int8(self, value: int) -> None:
        self.number("int8", value)

    def int16(self, value: int) -> None:
        self.number("int16", value)

    def int32(self, value: int) -> None:
        self.number("int32", value)

    def int64(self, value: int) -> None:
        self.number("int64", value)

    def uuid(self, value: bytes) -> None:
        self._written += write_uuids([value])

    def raw(self, value: Buffer) -> None:
        self._written += value

    def uvarint(self, value: int) -> None:
        self._written += uvarint(value)

    def varint(self, value: int) -> None:
        """Write a zigzag varint of 32 bits."""
        self._written += uvarint(((value << 1) ^ (value >> 31)) & 0xFFFFFFFF)

    def chunk(self, value: Buffer | None, *, string: bool, compact: bool) -> None:
        if value is None:
            self.raw(b"\0" if compact else b"\xff\xff" if string else b"\xff\xff\xff\xff")
            return
        if string and len(value) > STRING_MAX:
            raise UnwritableMessage(f"a string of {len(value)} bytes is longer than {STRING_MAX}")
        if compact:
            self.uvarint(len(value) + 1)
        else:
            self.number("int16" if string else "int32", len(value))
        self.raw(value)

    def string(self, value: str | None, *, compact: bool = False) -> None:
        self.chunk(None if value is None else value.encode(), string=True, compact=compact)

    def blob(self, value: Buffer | None, *, compact: bool = False) -> None:
        self.chunk(value, string=False, compact=compact)

    def array(self, values: Sequence[T] | None, write: Callable[[T], None], *, compact: bool = False) -> None:
        if compact:
            self.uvarint(0 if values is None else len(values) + 1)
        else:
            self.int32(-1 if values is None else len(values))
        for value in values or ():
            write(value)

    def tags(self, known: Sequence[tuple[int, bytes]], unknown: Sequence[tuple[int, bytes]] = ()) -> None:
        self.raw(write_tags(known, unknown))
