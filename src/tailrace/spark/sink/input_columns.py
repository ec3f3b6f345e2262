"""Which columns of a DataFrame make records: those of Spark's Kafka sink, and `timestamp`.

`value` has to be there, and a topic: as a column or as an option. Columns that a topic read by Spark has besides, and
any others, are left aside as Spark's sink does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.spark.sink.errors import UnwritableRows

HEADERS_TYPE = "array<struct<key:string,value:binary>>"
_TYPES: dict[str, tuple[str, ...]] = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS_TYPE,),
    "timestamp": ("timestamp",),
}


@dataclass(frozen=True, slots=True)
class InputColumns:
    """Where each column is, by its place in the rows; None for one that is not there."""

    value: int
    key: int | None = None
    topic: int | None = None
    partition: int | None = None
    headers: int | None = None
    timestamp: int | None = None


def input_columns(fields: Sequence[tuple[str, str]], topic_option: str | None) -> InputColumns:
    """The columns among (name, type); UnwritableRows for what no record can be made of. A topic option goes first."""
    places: dict[str, int] = {}
    for place, (name, kind) in enumerate(fields):
        allowed = _TYPES.get(name)
        if allowed is None or (name == "topic" and topic_option is not None):
            continue
        if kind not in allowed:
            raise UnwritableRows(f"column {name!r} is of type {kind}, and has to be {' or '.join(allowed)}")
        places[name] = place
    if "value" not in places:
        names = ", ".join(name for name, _ in fields) or "none"
        raise UnwritableRows(f"there is no column 'value': it holds the records, and the columns are {names}")
    if topic_option is None and "topic" not in places:
        raise UnwritableRows("neither an option nor a column 'topic' says where to write to")
    return InputColumns(**places)
