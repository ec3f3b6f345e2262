"""The columns of the table: those of Spark's Kafka source, and more when asked for.

Which columns are read is the user's schema, if one is given (`.schema("value binary")` decodes nothing else), or else
the seven that Spark's source has, with `headers` if includeHeaders is set and facts of the batches if includeBatchFacts
is.
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
    spark_type: str  # as Spark writes it: simpleString
    bit: int  # what has to be decoded for it; 0 for what is the same in all rows


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
    """The columns as Spark takes them for a schema."""
    return ", ".join(f"`{column.name}` {column.spark_type}" for column in chosen)


def chosen_columns(fields: Sequence[tuple[str, str]]) -> tuple[Column, ...]:
    """The columns that a user's schema names, as (name, type); WrongOption for one that the log does not have."""
    found = []
    for name, spark_type in fields:
        column = KNOWN.get(name)
        if column is None:
            raise WrongOption(f"there is no column {name!r}: the log has {', '.join(KNOWN)}")
        if column.spark_type != spark_type:
            raise WrongOption(f"column {name!r} is a {column.spark_type}, and the schema asks for {spark_type}")
        found.append(column)
    return tuple(found)


def wanted_bits(chosen: Sequence[Column]) -> int:
    bits = 0
    for column in chosen:
        bits |= column.bit
    return bits
