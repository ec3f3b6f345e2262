"""Schemas, and the Python that is generated from them.

schema.py          MessageSchema, StructSchema and Field, read from schemas/
source.py          Source: lines of generated Python
reader_source.py   the reader of one version of a message
writer_source.py   the writer of one version of a message
__main__.py        prints both: `python -m tailrace.protocol.codegen FetchRequest 17`
"""
