"""Column functions for values with a schema registry's frame."""

from tailrace.spark.functions.avro import from_confluent_avro
from tailrace.spark.functions.framing import (
    confluent_payload,
    confluent_schema_id,
    from_confluent_json,
    from_confluent_protobuf,
    to_confluent_frame,
)

__all__ = [
    "confluent_payload",
    "confluent_schema_id",
    "from_confluent_avro",
    "from_confluent_json",
    "from_confluent_protobuf",
    "to_confluent_frame",
]
