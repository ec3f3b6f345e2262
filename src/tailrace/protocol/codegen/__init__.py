"""Schemas, and the Python code generated from them.

schema.py          MessageSchema, StructSchema and Field, read from schemas/
source.py          Source: lines of generated Python
reader_source.py   the reader of one version of a message
writer_source.py   the writer of one version of a message
compiler.py        compiles readers and writers of one version, on first use
diagnosis.py       finds the field that could not be written, and the reason
__main__.py        prints reader and writer: `python -m tailrace.protocol.codegen FetchRequest 17`
field_versions.py  the first version of a message that has a field
"""
