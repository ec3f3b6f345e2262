"""Schemas, and the Python that is generated from them.

schema.py          MessageSchema, StructSchema and Field, read from schemas/
source.py          Source: lines of generated Python
reader_source.py   the reader of one version of a message
writer_source.py   the writer of one version of a message
compiler.py        compiles readers and writers of one version, on first use
diagnosis.py       which field could not be written, and why
__main__.py        prints both: `python -m tailrace.protocol.codegen FetchRequest 17`
field_versions.py  the first version of a message that has a field
"""
