"""The columns of the table: those of Spark's Kafka source, and optional ones.

With a schema, such as `.schema("value binary")`, only its columns are read and decoded. The default is the seven
columns of Spark's source. includeHeaders adds `headers`, and includeBatchFacts adds columns about the batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.records.columnar import columns
from tailrace.spark.source.errors import WrongOption

HEADERS_TYPE = "array<struct<key:string,value:binary>>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    spark_type: str  # the simpleString of the type
    bit: int  # the field to decode; 0: the same value in all rows


TOPIC = Column("topic", "string", 0)
PARTITION = Column("partition", "int", 0)
HEADERS = Column("headers", HEADERS_TYPE, columns.HEADERS)

PLAIN = (
    Column("key", "binary", columns.KEY),
    Column("value", "binary", columns.VALUE),
    TOPIC,
    PARTITION,
    Column("offset", "bigint", columns.OFFSET),
    Column("timestamp", "timestamp", columns.TIMESTAMP),
    Column("timestampType", "int", columns.TIMESTAMP_TYPE),
)
BATCH_FACTS = (
    Column("leaderEpoch", "int", columns.LEADER_EPOCH),
    Column("producerId", "bigint", columns.PRODUCER_ID),
    Column("producerEpoch", "int", columns.PRODUCER_EPOCH),
    Column("baseSequence", "int", columns.BASE_SEQUENCE),
    Column("batchBaseOffset", "bigint", columns.BATCH_OFFSET),
    Column("batchSize", "int", columns.BATCH_SIZE),
    Column("compression", "string", columns.ATTRIBUTES),
    Column("isTransactional", "boolean", columns.ATTRIBUTES),
)
KNOWN = {column.name: column for column in (*PLAIN, HEADERS, *BATCH_FACTS)}


def default_columns(*, headers: bool, batch_facts: bool) -> tuple[Column, ...]:
    return PLAIN + ((HEADERS,) if headers else ()) + (BATCH_FACTS if batch_facts else ())


def ddl(chosen: Sequence[Column]) -> str:
    """Return the columns as a DDL string for Spark."""
    return ", ".join(f"`{column.name}` {column.spark_type}" for column in chosen)


def chosen_columns(fields: Sequence[tuple[str, str]]) -> tuple[Column, ...]:
    """Return the columns of a user's schema (name, type). Raise WrongOption for an unknown column."""
    found = []
    for name, spark_type in fields:
        column = KNOWN.get(name)
        if column is None:
            raise WrongOption(f"there is no column {name!r}; the columns are {', '.join(KNOWN)}")
        if column.spark_type != spark_type:
            raise WrongOption(f"column {name!r} has type {column.spark_type}, but the schema has {spark_type}")
        found.append(column)
    return tuple(found)


def wanted_bits(chosen: Sequence[Column]) -> int:
    bits = 0
    for column in chosen:
        bits |= column.bit
    return bits
