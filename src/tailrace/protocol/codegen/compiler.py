"""Compiler: schema and version → straight-line Python that reads or writes a message, made on first use.

A generated function holds no decision that the version has already made. Neighbouring values of fixed size, and the
first byte of a length that follows them, are one `struct` call; arrays of structs are loops within the function; a
struct's tagged fields, rare as a rule, have a function of their own. To see them:

    python -m tailrace.protocol.codegen FetchRequest 17
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.protocol.codegen.reader_source import ReaderSource
from tailrace.protocol.codegen.writer_source import WriterSource
from tailrace.protocol.errors import UnsupportedVersion


def compile_reader(message_class: Any, version: int) -> Callable[..., Any]:
    """A function (buffer, position) → (message, end) for one version."""
    _check_version(message_class, version)
    source = ReaderSource(message_class, version)
    return _compile(source.text(), source.names, f"<{message_class.SCHEMA.name} v{version} reader>")


def compile_writer(message_class: Any, version: int) -> Callable[..., Any]:
    """A function (message, parts) that appends one version's bytes to parts."""
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
