"""The frame of a schema registry's serializers: a zero byte, the schema id in four bytes, and the payload."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

HEADER_SIZE: Final = 5


class FramedGroup(NamedTuple):
    """The values with one schema id."""

    schema_id: int
    rows: list[int] | None  # None: all rows
    payload: Any  # a pyarrow.BinaryArray


def split_frames(values: Any) -> tuple[list[FramedGroup], dict[int, str]]:
    """Return the values by their schema id, and the reason for each value without a frame."""
    prefixes = pc.binary_slice(values, 0, HEADER_SIZE).dictionary_encode()
    payload = pc.binary_replace_slice(values, start=0, stop=HEADER_SIZE, replacement=b"")
    known = prefixes.dictionary.to_pylist()
    if len(known) == 1 and _is_framed(known[0]):
        return [FramedGroup(int.from_bytes(known[0][1:]), None, payload)], {}
    rows_of: dict[bytes, list[int]] = {}
    for row, number in enumerate(prefixes.indices.to_pylist()):
        rows_of.setdefault(known[number], []).append(row)
    groups: list[FramedGroup] = []
    errors: dict[int, str] = {}
    for prefix, rows in rows_of.items():
        if _is_framed(prefix):
            groups.append(FramedGroup(int.from_bytes(prefix[1:]), rows, payload.take(pa.array(rows, pa.int64()))))
        else:
            errors |= dict.fromkeys(rows, _fault(prefix))
    return groups, errors


def _is_framed(prefix: bytes) -> bool:
    return len(prefix) == HEADER_SIZE and prefix[0] == 0


def _fault(prefix: bytes) -> str:
    if len(prefix) < HEADER_SIZE:
        return f"the value has {len(prefix)} bytes; a value of a schema registry has at least {HEADER_SIZE}"
    return f"the value starts with byte {prefix[0]}, not with the zero byte of a schema registry's frame"
