"""AvroDecoder: decodes Avro values to an Arrow array, from the writer's schema to the reader's.

fastavro decodes one value at a time. It reads without logical types, so that times stay numbers and decimals bytes, and
Arrow converts whole columns: nothing is rounded on the way.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.spark.typed.schemas.avro_schema import AvroSchema
from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.values.decoded import Decoded, build_array, reason, spread

_MILLIS = ("timestamp-millis", "local-timestamp-millis")


class AvroDecoder:
    """A decoder of bare Avro values: without the header of a file and without a schema id."""

    def __init__(
        self,
        reader: str,
        writer: str | None = None,
        references: tuple[str, ...] = (),
        *,
        reader_references: tuple[str, ...] | None = None,
    ) -> None:
        """`writer` is the schema of the values (default: the reader's).

        `references` are the schemas to which the writer's schema refers; `reader_references` those to which the
        reader's schema refers (default: `references`).
        """
        used = references if reader_references is None else reader_references
        self._reader = AvroSchema(reader, used)
        self._writer = self._reader if writer is None else AvroSchema(writer, references)
        self._parsed_writer, self._parsed_reader = _parsed(self._writer), None
        if writer is not None:
            self._reader.check_writer(self._writer)
            self._parsed_reader = _parsed(self._reader)

    @property
    def type(self) -> Any:
        return self._reader.type

    def decode(self, values: Any) -> Decoded:
        read = _fastavro().schemaless_reader
        items: list[tuple[int, Any]] = []
        errors: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            source = io.BytesIO(value)
            try:
                found = read(source, self._parsed_writer, self._parsed_reader)
            except Exception as error:  # fastavro raises what its parts raise: IndexError, EOFError, struct.error, …
                errors[row] = f"the value does not match the Avro schema: {type(error).__name__} {reason(error)}"
                continue
            if source.tell() != len(value):
                errors[row] = f"the value has {len(value) - source.tell()} bytes after the Avro data"
            else:
                items.append((row, found))
        return Decoded(spread(build_array(items, self._build, errors), len(values), errors, self.type), errors)

    def _build(self, values: Sequence[Any]) -> Any:
        kind = self.type
        return _final(pa.array(values, _plain_type(kind)), kind, "$", self._reader.logical)


def _parsed(schema: AvroSchema) -> Any:
    names: dict[str, Any] = {}
    try:
        for reference in schema.plain_references:
            _fastavro().parse_schema(reference, names)
        return _fastavro().parse_schema(schema.plain, names)
    except Exception as error:
        raise SchemaRefused(f"the Avro schema is not valid: {reason(error)}") from None


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise ImportError("Avro values need fastavro: pip install 'tailrace[avro]'") from None
    return fastavro


def _mapped(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_mapped(field.type, leaf)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mapped(kind.value_type, leaf)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_mapped(kind.item_type, leaf)))
    return leaf(kind)


def _plain_type(kind: Any) -> Any:
    """Return the type of values without logical types."""

    def leaf(one: Any) -> Any:
        if pa.types.is_date(one):
            return pa.int32()
        if pa.types.is_timestamp(one):
            return pa.int64()
        return pa.binary() if pa.types.is_decimal(one) else one

    return _mapped(kind, leaf)


def _final(array: Any, kind: Any, path: str, logical: dict[str, str]) -> Any:
    """Convert an array of plain values to the final type."""
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        parts = [_final(array.field(at), field.type, f"{path}.{field.name}", logical) for at, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null() if array.null_count else None)
    if pa.types.is_list(kind):
        values = _final(array.values, kind.value_type, f"{path}[]", logical)
        return pa.ListArray.from_arrays(array.offsets, values, kind, mask=array.is_null() if array.null_count else None)
    if pa.types.is_map(kind):
        items = _final(array.items, kind.item_type, f"{path}{{}}", logical)
        mask = array.is_null() if array.null_count else None
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, kind, mask=mask)
    if pa.types.is_decimal(kind):
        return _decimals(array, kind)
    if pa.types.is_timestamp(kind) and logical.get(path) in _MILLIS:
        array = pc.multiply_checked(array, 1000)
    return pc.cast(array, kind)


def _decimals(array: Any, kind: Any) -> Any:
    from decimal import Context, Decimal

    limit, context = 10**kind.precision, Context(prec=kind.precision)
    found: list[Any] = []
    for data in array.to_pylist():
        if data is None:
            found.append(None)
            continue
        unscaled = int.from_bytes(data, "big", signed=True) if len(data) <= 32 else limit
        if abs(unscaled) >= limit:
            raise ValueError(f"a decimal of {len(data)} bytes does not fit into {kind}")
        found.append(context.scaleb(Decimal(unscaled), -kind.scale))
    return pa.array(found, kind)
