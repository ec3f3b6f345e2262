"""Converts columns back to rows, without Arrow, for tests of `records/columnar/columns.py`."""

from __future__ import annotations

from typing import Any

FLAGS = (
    "OFFSET",
    "TIMESTAMP",
    "TIMESTAMP_TYPE",
    "KEY",
    "VALUE",
    "HEADERS",
    "LEADER_EPOCH",
    "PRODUCER_ID",
    "PRODUCER_EPOCH",
    "BASE_SEQUENCE",
    "BATCH_OFFSET",
    "BATCH_SIZE",
    "ATTRIBUTES",
)


def rows(module: Any, columns: Any) -> list[dict[str, Any]]:
    """Return the rows that a RecordColumns of a module (compiled or interpreted) holds now."""
    found: dict[str, list[Any]] = {}
    for name in FLAGS:
        bit = getattr(module, name)
        if not columns.wanted & bit:
            continue
        if name == "HEADERS":
            found[name] = _headers(columns)
        elif bit in (module.KEY, module.VALUE):
            found[name] = _strings(columns.columns[bit], columns.rows)
        else:
            column = columns.columns[bit]
            view = memoryview(column.buffer).cast("B").cast("q" if column.width == 8 else "i")
            found[name] = list(view[: columns.rows])
    return [{name: values[row] for name, values in found.items()} for row in range(columns.rows)]


def _strings(column: Any, count: int) -> list[bytes | None]:
    assert column.rows == count
    ends = memoryview(column.offsets_buffer).cast("B").cast("i")
    data = memoryview(column.data_buffer).cast("B")
    bits = memoryview(column.validity_buffer).cast("B")
    values = [bytes(data[ends[n] : ends[n + 1]]) if bits[n >> 3] >> (n & 7) & 1 else None for n in range(count)]
    assert values.count(None) == column.nulls
    return values


def _headers(columns: Any) -> list[list[tuple[str, bytes | None]] | None]:
    ends = memoryview(columns.header_ends.buffer).cast("B").cast("i")
    bits = memoryview(columns.header_validity).cast("B")
    total = ends[columns.rows]
    keys = _strings(columns.header_keys, total)
    values = _strings(columns.header_values, total)
    pairs = [(str(key, "utf-8"), value) for key, value in zip(keys, values, strict=True) if key is not None]
    assert len(pairs) == total
    result = [pairs[ends[n] : ends[n + 1]] if bits[n >> 3] >> (n & 7) & 1 else None for n in range(columns.rows)]
    assert result.count(None) == columns.rows_without_headers
    return result
