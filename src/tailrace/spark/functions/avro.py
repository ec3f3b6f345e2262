"""Decodes framed Avro values in Python, without a jar, each value by the schema that it was written with.

Spark's own from_avro needs the jar `spark-avro` and one schema for all values. Here the schema id of a value selects
the writer's schema, and Avro's schema resolution converts the value to the reader's schema. So a topic may have values
of several schema versions. The decoder is fastavro (`pip install 'tailrace[avro]'`, on driver and workers).
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
from tailrace.spark.functions.registry_frame import HEADER_SIZE, ColumnOrName
from tailrace.spark.functions.schemas import Schemas

MODES = ("FAILFAST", "PERMISSIVE")


def from_confluent_avro(
    value: ColumnOrName, reader_schema: str, schemas: str | Mapping[int, str], mode: str = "FAILFAST"
) -> Column:
    """Return a column with the decoded values, of the type of reader_schema.

    `schemas` has the writers' schemas by id, or is the URL of a schema registry. A null value stays null. A value
    without the frame, or one that cannot be decoded, ends the query; with mode PERMISSIVE it becomes null.
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}; it must be {' or '.join(MODES)}")
    _fastavro()  # raise a missing package here, not in a task
    returned = spark_type(reader_schema)
    decoder = AvroDecoder(reader_schema, schemas, is_permissive=mode == "PERMISSIVE")

    def decode(values: Any) -> Any:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        return pa.array([decoder.decode(one) for one in values.to_pylist()], to_arrow_type(returned, timezone="UTC"))

    return arrow_udf(decode, returned, PythonEvalType.SQL_SCALAR_ARROW_UDF)(value)


class AvroDecoder:
    """A decoder of framed values. It is pickled to workers without its cached schemas."""

    def __init__(self, reader_schema: str, schemas: str | Mapping[int, str], *, is_permissive: bool = False) -> None:
        self._reader_text = reader_schema
        self._source = schemas if isinstance(schemas, str) else dict(schemas)
        self._is_permissive = is_permissive
        self._reset_schemas()

    def _reset_schemas(self) -> None:
        self._schemas = Schemas(self._source)
        self._reader: Any = None
        self._writers: dict[int, Any] = {}

    def __getstate__(self) -> tuple[str, str | dict[int, str], bool]:
        return self._reader_text, self._source, self._is_permissive

    def __setstate__(self, state: tuple[str, str | dict[int, str], bool]) -> None:
        self._reader_text, self._source, self._is_permissive = state
        self._reset_schemas()

    def decode(self, value: bytes | None) -> Any:
        if value is None:
            return None
        if len(value) < HEADER_SIZE or value[0] != 0:
            if self._is_permissive:
                return None
            raise ValueError(f"{value[:8]!r}… has no schema id: a framed value starts with a zero byte and the id")
        schema_id = int.from_bytes(value[1:HEADER_SIZE], "big")
        writer = self._writer(schema_id)  # a missing schema is an error in every mode
        try:
            return _fastavro().schemaless_reader(io.BytesIO(value[HEADER_SIZE:]), writer, self._reader)
        except Exception as error:
            if self._is_permissive:
                return None
            raise ValueError(
                f"a value with schema {schema_id} cannot be decoded: {type(error).__name__} {error}"
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
