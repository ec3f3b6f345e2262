"""Schemas of values: from a file or a schema registry, as Arrow types.

json_schema.py      JSON Schema
ddl.py              column definitions of SQL
avro_schema.py      Avro
protobuf_schema.py  Protobuf
registry.py         a schema registry
errors.py           SchemaRefused, and limits for all schemas
"""
