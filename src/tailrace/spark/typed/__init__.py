"""Values and keys as typed columns, and how the schema of a table follows that of its topic.

Nothing here uses pyspark, and only `schemas/registry.py` uses the network.

typed_rows.py    TypedRows: records as rows with typed columns
value_format.py  ValueFormat: JSON, Avro, Protobuf or text, with a schema from a file or a registry
schemas/         schemas as Arrow types
values/          values as Arrow arrays
evolution/       changes of a table's schema
"""
