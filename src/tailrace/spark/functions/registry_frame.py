"""The frame of a schema registry's serializers: a zero byte, the schema id in four bytes, and the payload.

    values.select(confluent_schema_id("value"), from_confluent_json("value", "id bigint, name string"))

With Protobuf, a list of numbers before the payload selects the message type in the schema. These functions consist of
Spark's own functions, so no data leaves the JVM. A value without the frame becomes null.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark's users know)
from pyspark.sql.types import ArrayType, MapType, StructType

HEADER_SIZE = 5
ColumnOrName = Column | str


def confluent_schema_id(value: ColumnOrName) -> Column:
    """Return the schema id of a framed value."""
    framed = _column(value)
    digits = F.hex(F.substring(framed, 2, 4))
    return F.when(_framed_condition(framed), F.conv(digits, 16, 10).cast("bigint").cast("int"))


def confluent_payload(value: ColumnOrName) -> Column:
    """Return the bytes after the schema id. For Protobuf they start with the list of message numbers."""
    framed = _column(value)
    return F.when(_framed_condition(framed), F.substr(framed, F.lit(HEADER_SIZE + 1)))


def from_confluent_json(
    value: ColumnOrName, schema: str | StructType | ArrayType | MapType, options: dict[str, str] | None = None
) -> Column:
    """Decode a framed JSON value. `schema` and `options` are those of Spark's from_json."""
    return F.from_json(confluent_payload(value).cast("string"), schema, options)


def confluent_protobuf_payload(value: ColumnOrName) -> Column:
    """Return the bytes after the list of message numbers.

    The list is its length and its numbers as zigzag varints, or one zero byte for [0]. Message numbers of 64
    or more give null. They occur only in a schema with that many messages at one level.
    """
    rest = confluent_payload(value)
    count = F.conv(F.hex(F.substring(rest, 1, 1)), 16, 10).cast("int") / 2
    numbers = F.hex(F.substr(rest, F.lit(2), count.cast("int")))
    small = F.hex(F.substring(rest, 1, 1)).rlike("^[0-7][02468ACE]$") & numbers.rlike("^([0-7][0-9A-F])*$")
    return F.when(small, F.substr(rest, count.cast("int") + 2))


def from_confluent_protobuf(
    value: ColumnOrName, message: str, descriptors: bytes, options: dict[str, str] | None = None
) -> Column:
    """Decode a framed Protobuf value with Spark's from_protobuf, which needs the jar `spark-protobuf`.

    `descriptors` is the file descriptor set that `protoc --descriptor_set_out --include_imports` writes.
    """
    from pyspark.sql.protobuf.functions import from_protobuf

    payload = confluent_protobuf_payload(value)
    return from_protobuf(payload, message, options=options, binaryDescriptorSet=descriptors)


def to_confluent_frame(payload: ColumnOrName, schema_id: int) -> Column:
    """Return a payload with the frame, for consumers that expect one."""
    if not 0 <= schema_id < 2**31:
        raise ValueError(f"{schema_id} is not a schema id (0 to {2**31 - 1})")
    return F.concat(F.lit(b"\0" + schema_id.to_bytes(4, "big")), _column(payload).cast("binary"))


def _column(value: ColumnOrName) -> Column:
    return F.col(value) if isinstance(value, str) else value


def _framed_condition(value: Column) -> Column:
    return (F.length(value) >= HEADER_SIZE) & (F.hex(F.substring(value, 1, 1)) == "00")
