"""TypedRows: the form of rows whose value, and perhaps key, are typed columns.

    key, headers, topic, partition, offset, timestamp, timestamp_type   the record, as in plain rows
    id, total, …                                                        the members of the value
    _error, _raw_value, _raw_key                                        a record that cannot be decoded

The members of a value that is a record become columns. A member with the name of a column above gets the prefix
`value_`. A value that is not a record, such as an Avro string, is the column `value`. All of them may be null: a
tombstone has no value. A decoded key is the column `key`: a struct if it is a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.tables.row_form import RECORD_SCHEMA
from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.value_format import ValueFormat
from tailrace.spark.typed.values.decoded import Decoded, ValueDecoder

KEEP: Final = "keep"
DROP: Final = "drop"
FAIL: Final = "fail"
ON_ERROR: Final = (KEEP, DROP, FAIL)
RECORD_COLUMNS: Final = ("key", "headers", "topic", "partition", "offset", "timestamp", "timestamp_type")
ERROR_COLUMNS: Final = (("_error", pa.string()), ("_raw_value", pa.binary()), ("_raw_key", pa.binary()))
_PREFIX: Final = "value_"


class BrokenRecord(JobError):
    """A record whose key or value cannot be decoded."""


class TypedRows:
    """It is pickled to workers without its decoders. `broken` counts the records that this copy could not decode."""

    evolves = True

    def __init__(
        self,
        value: ValueFormat,
        key: ValueFormat | None = None,
        *,
        on_error: str = KEEP,
        row_schema: Any = None,
    ) -> None:
        """`row_schema` has the columns with wider types, if a table has them."""
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error is {on_error!r}; it must be one of {', '.join(ON_ERROR)}")
        self._formats = value, key
        self._on_error = on_error
        self._value: ValueDecoder = value.decoder()
        self._key: ValueDecoder | None = None if key is None else key.decoder()
        self._fields = _value_fields(self._value.type)
        self._own_schema = self._schema()
        self.schema = row_schema or self._own_schema
        self.broken = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (*self._formats, self._on_error, self.schema)

    def with_schema(self, schema: Any) -> TypedRows:
        return _restored(*self._formats, self._on_error, schema)

    def latest(self) -> TypedRows:
        value, key = self._formats
        newest = value.latest(), None if key is None else key.latest()
        if newest == self._formats:
            return self
        return TypedRows(*newest, on_error=self._on_error)

    def _schema(self) -> Any:
        fields = [RECORD_SCHEMA.field(name) for name in RECORD_COLUMNS]
        if self._key is not None:
            _check_columns(self._key.type, "key")
            fields[0] = pa.field("key", self._key.type)
        fields += self._fields
        if self._on_error == KEEP:
            fields += [pa.field(name, kind) for name, kind in ERROR_COLUMNS]
        return pa.schema(fields)

    def convert(self, table: Any) -> Any:
        """Convert records into rows. Raise BrokenRecord with on_error=fail."""
        values = _Column(table.column("value"))
        decoded = values.decode(self._value)
        errors = dict(decoded.errors)
        arrays = [table.column(name) for name in RECORD_COLUMNS]
        broken_keys: dict[int, str] = {}
        if self._key is not None:
            keys = _Column(table.column("key")).decode(self._key)
            arrays[0], broken_keys = keys.array, keys.errors
            errors |= {
                row: f"{errors[row]}; key: {why}" if row in errors else f"key: {why}"
                for row, why in broken_keys.items()
            }
        self.broken += len(errors)
        if errors and self._on_error == FAIL:
            self._fail(table, errors)
        arrays += _columns_of(decoded.array, self._fields)
        if self._on_error == KEEP:
            rows = len(table)
            arrays += [
                _sparse(errors, rows, pa.string()),
                _sparse({row: values.array[row] for row in decoded.errors}, rows, pa.binary()),
                _sparse({row: table.column("key")[row] for row in broken_keys}, rows, pa.binary()),
            ]
        result = pa.Table.from_arrays(arrays, schema=self._own_schema)
        if self.schema != self._own_schema:
            result = result.cast(self.schema)
        if errors and self._on_error == DROP:
            kept = pa.array([row not in errors for row in range(len(table))])
            return result.filter(kept)
        return result

    def _fail(self, table: Any, errors: dict[int, str]) -> None:
        row = min(errors)
        topic, partition, offset = (table.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
        raise BrokenRecord(
            f"the record at offset {offset} of {topic}-{partition} cannot be decoded: {errors[row]}; "
            "--on-error keep exports such records with their bytes and the reason"
        )


def _restored(value: ValueFormat, key: ValueFormat | None, on_error: str, row_schema: Any) -> TypedRows:
    return TypedRows(value, key, on_error=on_error, row_schema=row_schema)


class _Column:
    """A binary column, which may have nulls."""

    def __init__(self, chunks: Any) -> None:
        whole = chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks
        self.array = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole

    def decode(self, decoder: ValueDecoder) -> Decoded:
        """Decode the values that are not null. Rows of the result are those of the column."""
        array = self.array
        if not array.null_count:
            return decoder.decode(array)
        rows = pc.indices_nonzero(array.is_valid())
        found = decoder.decode(array.drop_null())
        places: list[int | None] = [None] * len(array)
        numbers = rows.to_pylist()
        for number, row in enumerate(numbers):
            places[row] = number
        errors = {numbers[row]: why for row, why in found.errors.items()}
        return Decoded(found.array.take(pa.array(places, pa.int32())), errors)


def _value_fields(kind: Any) -> list[Any]:
    """Return the columns of a value. Raise SchemaRefused if two have the same name."""
    _check_columns(kind, "value")
    if not pa.types.is_struct(kind):
        return [pa.field("value", kind)]
    reserved = {*RECORD_COLUMNS, *(name for name, _ in ERROR_COLUMNS)}
    fields: list[Any] = []
    taken = set(reserved)
    for field in kind:
        name = f"{_PREFIX}{field.name}" if field.name.lower() in reserved else field.name
        if name.lower() in taken:
            raise SchemaRefused(
                f"the value has two members for the column {name}: names of columns do not differ in case only, "
                f"and members named {', '.join(sorted(reserved))} get the prefix {_PREFIX}"
            )
        taken.add(name.lower())
        fields.append(pa.field(name, field.type))
    return fields


def _check_columns(kind: Any, place: str) -> None:
    """Raise SchemaRefused for types that tables do not have."""
    if pa.types.is_null(kind):
        raise SchemaRefused(f"{place} is always null; tables have no such column")
    if pa.types.is_struct(kind):
        if not len(list(kind)):
            raise SchemaRefused(f"{place} is a record without members; tables have no such column")
        names: set[str] = set()
        for field in kind:
            if field.name.lower() in names:
                raise SchemaRefused(f"{place} has two members {field.name!r} that differ in case only")
            names.add(field.name.lower())
            _check_columns(field.type, f"{place}.{field.name}")
    elif pa.types.is_list(kind):
        _check_columns(kind.value_type, f"{place}[]")
    elif pa.types.is_map(kind):
        _check_columns(kind.item_type, f"{place}{{}}")


def _columns_of(array: Any, fields: Sequence[Any]) -> list[Any]:
    if not pa.types.is_struct(array.type):
        return [array]
    return array.flatten()  # type: ignore[no-any-return]


def _sparse(found: dict[int, Any], rows: int, kind: Any) -> Any:
    if not found:
        return pa.nulls(rows, kind)
    values = [value.as_py() if isinstance(value, pa.Scalar) else value for value in found.values()]
    places: list[int | None] = [None] * rows
    for number, row in enumerate(found):
        places[row] = number
    return pa.array(values, kind).take(pa.array(places, pa.int32()))
