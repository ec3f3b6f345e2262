"""Decodes values to Arrow arrays. Broken values become null, with a reason for each.

decoded.py          ValueDecoder and Decoded
json_values.py      JSON, with the reader of Arrow
avro_values.py      Avro, with fastavro
protobuf_values.py  Protobuf messages
text_values.py      UTF-8 text
framing.py          the frame of a schema registry
framed_values.py    values with a schema id
registry_values.py  RegistryValues: single keys and values, decoded for people
"""
