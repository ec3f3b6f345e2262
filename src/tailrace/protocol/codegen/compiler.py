"""Compiler: generates straight-line Python that reads or writes one version of a message, on first use.

A generated function contains no decision that depends only on the version. One `struct` call handles neighbouring
values of fixed size, together with the first byte of a length that follows them. Arrays of structs are loops within the
function. Tagged fields are rare, so each struct has a separate function for them. To see the generated code:

    python -m tailrace.protocol.codegen FetchRequest 17
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.protocol.codegen.reader_source import ReaderSource
from tailrace.protocol.codegen.writer_source import WriterSource
from tailrace.protocol.errors import UnsupportedVersion


def compile_reader(message_class: Any, version: int) -> Callable[..., Any]:
    """Return a function (buffer, position) → (message, end) for one version."""
    _check_version(message_class, version)
    source = ReaderSource(message_class, version)
    return _compile(source.text(), source.names, f"<{message_class.SCHEMA.name} v{version} reader>")


def compile_writer(message_class: Any, version: int) -> Callable[..., Any]:
    """Return a function (message, parts) that appends one version's bytes to parts."""
    _check_version(message_class, version)
    source = WriterSource(message_class, version)
    return _compile(source.text(), source.names, f"<{message_class.SCHEMA.name} v{version} writer>")


def _check_version(message_class: Any, version: int) -> None:
    schema = message_class.SCHEMA
    if version not in schema.versions:
        raise UnsupportedVersion(f"{schema.name} has versions {schema.versions}, not {version}")


def _compile(text: str, names: dict[str, Any], file_name: str) -> Callable[..., Any]:
    exec(compile(text, file_name, "exec"), names)
    made: Callable[..., Any] = names["main"]
    return made
