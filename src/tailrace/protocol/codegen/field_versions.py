"""The first version of a message that has a field, derived from the schema.

A handler that behaves differently "from version 13 on" usually means "once requests carry topic ids". It asks for the
version by the name of the field, so that the number is only in Kafka's schemas:

    first_version_with("FetchRequest", "topics.topic_id")    13

The versions that several modules need have names here.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from tailrace.protocol.codegen.schema import StructSchema, load_schema


@cache
def first_version_with(message: str, path: str) -> int:
    """Return the first version of a message that has a field. Raise LookupError if the message has no such field.

    `path` names the field by its attributes, from the outside in: "topics.partitions.current_leader".
    """
    schema = load_schema(message)
    struct: StructSchema | None = schema
    first = schema.versions.low
    for name in path.split("."):
        field = next((one for one in struct.fields if one.attribute == name), None) if struct else None
        if field is None:
            raise LookupError(f"{message} has no field {path}")
        first = max(first, field.versions.low)
        struct = field.struct
    return first


FETCH_TOPIC_IDS: Final = first_version_with("FetchRequest", "topics.topic_id")
FETCH_REPLICA_STATE: Final = first_version_with("FetchRequest", "replica_state")
PRODUCE_TOPIC_IDS: Final = first_version_with("ProduceRequest", "topic_data.topic_id")
OFFSET_TOPIC_IDS: Final = first_version_with("OffsetCommitRequest", "topics.topic_id")  # OffsetFetch has the same
