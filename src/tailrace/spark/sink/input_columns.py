"""The columns of a DataFrame that make records: those of Spark's Kafka sink, and `timestamp`.

`value` is required, and a topic, as a column or as an option. Other columns are ignored, as in Spark's sink.
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
    """The index of each column in the rows; None: the column is missing."""

    value: int
    key: int | None = None
    topic: int | None = None
    partition: int | None = None
    headers: int | None = None
    timestamp: int | None = None


def input_columns(fields: Sequence[tuple[str, str]], topic_option: str | None) -> InputColumns:
    """Find the columns among (name, type). A topic option overrides the column. Raise UnwritableRows for wrong ones."""
    places: dict[str, int] = {}
    for place, (name, kind) in enumerate(fields):
        allowed = _TYPES.get(name)
        if allowed is None or (name == "topic" and topic_option is not None):
            continue
        if kind not in allowed:
            raise UnwritableRows(f"column {name!r} has type {kind}; it must be {' or '.join(allowed)}")
        places[name] = place
    if "value" not in places:
        names = ", ".join(name for name, _ in fields) or "none"
        raise UnwritableRows(f"the column 'value' is missing; the columns are: {names}")
    if topic_option is None and "topic" not in places:
        raise UnwritableRows("no topic: set the option 'topic', or add a column 'topic'")
    return InputColumns(**places)
