"""Column functions for values with a schema registry's frame.

framing.py      the frame: a zero byte, the schema's id, the payload
avro.py         framed Avro values as columns, without a jar
avro_types.py   an Avro schema as Spark's type
schemas.py      schemas from a dictionary or a registry
"""

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
