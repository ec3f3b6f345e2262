"""The .snapshot file of producer states.

position  size  field
0         2     version (1)
2         4     CRC-32C of the rest
6         4     number of producers
10        46    each: producer id (8), epoch (2), last sequence (4), last offset (8), offset delta (4),
                timestamp (8), coordinator epoch (4), first offset of its open transaction or -1 (8)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from tailrace.model.ids import Offset, ProducerId
from tailrace.records.codecs.crc32c import crc32c

_HEADER = Struct(">hIi")
_CRC = Struct(">I")
_CRC_POSITION = 2
_BODY_POSITION = 6
_VERSION = 1
_ENTRY = Struct(">qhiqiqiq")
assert _ENTRY.size == 46


class CorruptSnapshot(Exception):
    """An invalid producer snapshot. An older one, or the log itself, is read instead."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class SnapshotEntry(NamedTuple):
    producer_id: ProducerId
    producer_epoch: int
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: Offset


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    return join_rows([encode_row(entry) for entry in entries])


def encode_row(entry: SnapshotEntry) -> bytes:
    return _ENTRY.pack(*entry)


def join_rows(rows: Sequence[bytes]) -> bytes:
    """Return the content of a file with these encoded entries."""
    data = bytearray(_HEADER.pack(_VERSION, 0, len(rows)) + b"".join(rows))
    _CRC.pack_into(data, _CRC_POSITION, crc32c(data[_BODY_POSITION:]))
    return bytes(data)


def decode_snapshot(data: bytes, path: str) -> list[SnapshotEntry]:
    if len(data) < _HEADER.size:
        raise CorruptSnapshot(path, f"{len(data)} bytes are less than the header of {_HEADER.size}")
    version, stored_crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(path, f"unknown version {version}")
    actual_crc = crc32c(data[_BODY_POSITION:])
    if stored_crc != actual_crc:
        raise CorruptSnapshot(path, f"checksum does not match: stored {stored_crc:#010x}, computed {actual_crc:#010x}")
    if count < 0 or _HEADER.size + count * _ENTRY.size != len(data):
        raise CorruptSnapshot(path, f"the count is {count} producers, but the file has {len(data)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]
