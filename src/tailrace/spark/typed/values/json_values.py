"""JsonDecoder: JSON objects to columns with the JSON reader of Arrow, without a Python object per value.

The values become lines (`records/columnar/json_lines.py`), and Arrow reads the lines by an explicit schema. If Arrow
refuses some line, the lines are halved until every broken value is found. So a value has the same result whatever
its neighbours are, and a few broken values cost little.

Rules, mostly those of Arrow. A missing or null member is null, and members outside the schema are ignored. A member of
another type, a fraction for an integer, a number that is too large and a repeated member break the value. NaN and
Infinity are accepted for floating point. Times are ISO 8601, with at most six digits of a second.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tailrace.records.columnar.json_lines import FAULTS, join_lines
from tailrace.spark.typed.values.decoded import Decoded, reason, spread


@dataclass(frozen=True, slots=True)
class JsonDecoder:
    fields: Any  # the pyarrow.Schema of the members

    @property
    def type(self) -> Any:
        return pa.struct(list(self.fields))

    def decode(self, values: Any) -> Decoded:
        rows = len(values)
        data, ends = _buffers(values)
        lines, faults = bytearray(len(data) + rows), bytearray(rows)
        used = join_lines(data, ends, lines, faults)
        errors = {row: f"the value {FAULTS[fault]}" for row, fault in enumerate(faults) if fault} if any(faults) else {}
        good = [row for row in range(rows) if row not in errors] if errors else range(rows)
        found = self._read_some(memoryview(lines)[:used], good, errors)
        return Decoded(spread(found, rows, errors, self.type), errors)

    def _read_some(self, lines: Any, rows: Any, errors: dict[int, str]) -> list[Any]:
        """Return the values of the lines as arrays. Broken ones are left out, and noted in `errors` by their row."""
        if not len(rows):
            return []
        try:
            return [self._read(lines, len(rows))]
        except (pa.ArrowException, ValueError) as error:
            if len(rows) == 1:
                errors[rows[0]] = reason(error).removesuffix(" in row 0")
                return []
        middle = len(rows) // 2
        cut = _end_of_line(lines, middle)
        return [
            *self._read_some(lines[:cut], rows[:middle], errors),
            *self._read_some(lines[cut:], rows[middle:], errors),
        ]

    def _read(self, lines: Any, rows: int) -> Any:
        read = pj.read_json(
            io.BytesIO(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([field.with_type(_read_type(field.type)) for field in self.fields]),
                unexpected_field_behavior="ignore",
            ),
        )
        if read.num_rows != rows:
            raise ValueError(f"{rows} values were read as {read.num_rows}")
        columns = [_final(read.column(at).combine_chunks(), field.type) for at, field in enumerate(self.fields)]
        array = pa.StructArray.from_arrays(columns, fields=list(self.fields)) if columns else _empty_structs(rows)
        array.validate(full=True)
        return array


def _buffers(values: Any) -> tuple[Any, Any]:
    """Return the bytes and the ends of values, as memoryviews."""
    _, ends, data = values.buffers()
    offsets = memoryview(ends).cast("B").cast("i")[values.offset : values.offset + len(values) + 1]
    return memoryview(data or b"").cast("B"), offsets


def _end_of_line(lines: Any, number: int) -> int:
    """Return the position after a number of lines. A line has no line feed inside."""
    text, position = bytes(lines), 0
    for _ in range(number):
        position = text.index(b"\n", position) + 1
    return position


def _empty_structs(rows: int) -> Any:
    return pa.array([{}] * rows, pa.struct([]))


def _read_type(kind: Any) -> Any:
    """Return the type to read a member as. Arrow's reader takes dates only as numbers, so they are read as text."""
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_read_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_read_type(kind.value_type)))
    return kind


def _final(array: Any, kind: Any) -> Any:
    return array if array.type == kind else pc.cast(array, kind)
