"""Kafka's messages: encoding and decoding. No sockets. May import model.

schemas/*.json ─► codegen/schema.py ─► registry.py (class) ─► codegen/compiler.py (reader, writer) ─► bytes

api_keys.py              ApiKey: name, number and versions of every API
messages.py              every message class by its name (types in messages.pyi)
registry.py              message classes by name, API key or record type
message.py               Message and Struct: one class per message, for all versions
headers.py               request and response headers
primitives.py            primitive types: varints, strings, arrays
framing.py               the length prefix of frames
strings.py               strings for hand-written encoders
errors.py                malformed, unsupported or unwritable messages
error_codes.py           counts the error codes of a response
json_form.py             messages as JSON, as Kafka's converters write them
release.py               frees a large message in small steps
internal_records/        frames of the records in internal topics
flat/                    Produce, Fetch and OffsetCommit as flat tuples, read and written by kernels
codegen/                 schemas, and the Python generated from them
"""
