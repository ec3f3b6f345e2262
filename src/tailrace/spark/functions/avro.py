"""Framed Avro values as columns, decoded in Python: no jar, and each value by the schema that it was written with.

Spark's own from_avro needs the jar `spark-avro` and one schema for all values. Here a value's id chooses the writer's
schema, and Avro's rules of resolution carry it over to the reader's, so that a topic may hold several generations. The
decoder is fastavro, which `pip install 'tailrace[avro]'` brings, on driver and workers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.util import PythonEvalType

from tailrace.spark.functions.avro_types import spark_type
from tailrace.spark.functions.framing import HEADER_SIZE, ColumnOrName
from tailrace.spark.functions.schemas import Schemas

MODES = ("FAILFAST", "PERMISSIVE")


def from_confluent_avro(
    value: ColumnOrName, reader_schema: str, schemas: str | Mapping[int, str], mode: str = "FAILFAST"
) -> Column:
    """A framed Avro value as the type of reader_schema.

    schemas: those that values were written with, by id, or a registry's address. A null is null. What is no framed
    value, or does not fit, ends the query, or with mode PERMISSIVE is null.
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}: it takes {' or '.join(MODES)}")
    _fastavro()  # told here, where the user is, and not by a task
    returned = spark_type(reader_schema)
    decoder = AvroDecoder(reader_schema, schemas, is_permissive=mode == "PERMISSIVE")

    def decode(values: Any) -> Any:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        return pa.array([decoder.decode(one) for one in values.to_pylist()], to_arrow_type(returned, timezone="UTC"))

    return arrow_udf(decode, returned, PythonEvalType.SQL_SCALAR_ARROW_UDF)(value)


class AvroDecoder:
    """Decodes framed values one by one; travels to workers without what it has learnt."""

    def __init__(self, reader_schema: str, schemas: str | Mapping[int, str], *, is_permissive: bool = False) -> None:
        self._reader_text = reader_schema
        self._source = schemas if isinstance(schemas, str) else dict(schemas)
        self._is_permissive = is_permissive
        self._forget()

    def _forget(self) -> None:
        self._schemas = Schemas(self._source)
        self._reader: Any = None
        self._writers: dict[int, Any] = {}

    def __getstate__(self) -> tuple[str, str | dict[int, str], bool]:
        return self._reader_text, self._source, self._is_permissive

    def __setstate__(self, state: tuple[str, str | dict[int, str], bool]) -> None:
        self._reader_text, self._source, self._is_permissive = state
        self._forget()

    def decode(self, value: bytes | None) -> Any:
        if value is None:
            return None
        if len(value) < HEADER_SIZE or value[0] != 0:
            if self._is_permissive:
                return None
            raise ValueError(f"{value[:8]!r}… has no schema id: a framed value begins with a zero byte and the id")
        schema_id = int.from_bytes(value[1:HEADER_SIZE], "big")
        writer = self._writer(schema_id)  # a schema that cannot be had is no matter of one value
        try:
            return _fastavro().schemaless_reader(io.BytesIO(value[HEADER_SIZE:]), writer, self._reader)
        except Exception as error:
            if self._is_permissive:
                return None
            raise ValueError(
                f"a value with schema {schema_id} cannot be read: {type(error).__name__} {error}"
            ) from error

    def _writer(self, schema_id: int) -> Any:
        if self._reader is None:
            self._reader = _parsed(self._reader_text)
        if schema_id not in self._writers:
            self._writers[schema_id] = _parsed(self._schemas.text(schema_id))
        return self._writers[schema_id]


def _parsed(text: str) -> Any:
    return _fastavro().parse_schema(json.loads(text))


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise ImportError("from_confluent_avro needs fastavro: pip install 'tailrace[avro]'") from None
    return fastavro
