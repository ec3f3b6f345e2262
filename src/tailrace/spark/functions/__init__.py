"""Column functions for values with the frame of a schema registry.

registry_frame.py  the frame: a zero byte, the schema id, the payload
avro.py            decodes framed Avro values without a jar
avro_types.py      converts an Avro schema to a Spark type
schemas.py         schemas from a dictionary or a registry
"""

from tailrace.spark.functions.avro import from_confluent_avro
from tailrace.spark.functions.registry_frame import (
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
