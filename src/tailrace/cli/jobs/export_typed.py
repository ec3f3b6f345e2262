"""Options of `tailrace job export` for typed columns in Iceberg and Delta tables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tailrace.cli.errors import CommandError

if TYPE_CHECKING:
    from tailrace.spark.tables.row_form import RowForm
    from tailrace.spark.typed.schemas.registry import RegistryAddress
    from tailrace.spark.typed.value_format import ValueFormat

FORMATS = ("json", "avro", "protobuf", "string")
ON_ERROR = ("keep", "drop", "fail")
_MAX_FILE = 8 * 1024 * 1024


def add_typed(export: argparse.ArgumentParser) -> None:
    typed = export.add_argument_group("typed columns (Iceberg and Delta)")
    for what in ("value", "key"):
        typed.add_argument(
            f"--{what}-schema",
            metavar="FILE",
            help=f"schema of the {what}s: JSON Schema or column definitions of SQL for json, an Avro schema, or "
            "[MESSAGE@]FILE with a Protobuf descriptor set",
        )
    typed.add_argument("--key-format", choices=FORMATS, help="decode keys of this format (default: bytes)")
    typed.add_argument(
        "--schema-registry",
        metavar="URL",
        help="values and keys have the frame of this schema registry; without --value-schema, the newest schema of "
        "the subject TOPIC-value is used",
    )
    typed.add_argument(
        "--registry-credentials", metavar="FILE", help="file with NAME:PASSWORD or `Bearer TOKEN` for the registry"
    )
    typed.add_argument(
        "--registry-ca", metavar="FILE", help="PEM file of the authorities that sign the registry's certificate"
    )
    typed.add_argument("--value-subject", metavar="NAME", help="subject of the values (default: TOPIC-value)")
    typed.add_argument("--key-subject", metavar="NAME", help="subject of the keys (default: TOPIC-key)")
    typed.add_argument(
        "--message", metavar="NAME", help="Protobuf message of the values, if the registered schema has several"
    )
    typed.add_argument(
        "--on-error",
        choices=ON_ERROR,
        help="records that cannot be decoded: keep them with their bytes and the reason in _error, drop them, or fail "
        "(default: keep)",
    )


# Options that mean nothing without another one.
_NEEDS = {
    "value_schema": "value_format",
    "key_schema": "key_format",
    "key_format": "value_format",
    "schema_registry": "value_format",
    "registry_credentials": "schema_registry",
    "registry_ca": "schema_registry",
    "value_subject": "schema_registry",
    "key_subject": "schema_registry",
    "message": "schema_registry",
    "on_error": "value_format",
}
OPTIONS = tuple(_NEEDS)


def row_form(options: argparse.Namespace) -> RowForm:
    """Return the form of rows that the options ask for."""
    from tailrace.spark.tables.row_form import PlainRows

    for name, needed in _NEEDS.items():
        if getattr(options, name) is not None and getattr(options, needed) is None:
            raise CommandError(f"--{name.replace('_', '-')} has no effect without --{needed.replace('_', '-')}")
    if options.value_format is None:
        return PlainRows()
    from tailrace.spark.typed.schemas.errors import SchemaRefused
    from tailrace.spark.typed.schemas.registry import SchemaUnknown
    from tailrace.spark.typed.typed_rows import TypedRows

    try:
        value = _format(options, "value")
        key = None if options.key_format is None else _format(options, "key")
        return TypedRows(value, key, on_error=options.on_error or "keep")
    except (SchemaRefused, SchemaUnknown, ImportError) as error:
        raise CommandError(str(error)) from None


def _format(options: argparse.Namespace, what: str) -> ValueFormat:
    """Return the format of values or keys."""
    from tailrace.spark.typed.value_format import ValueFormat, registered_format

    kind, file = getattr(options, f"{what}_format"), getattr(options, f"{what}_schema")
    if kind == "string":
        if file is not None:
            raise CommandError(f"--{what}-schema has no effect on --{what}-format string")
        return ValueFormat(kind)
    address = None if options.schema_registry is None else _registry(options)
    if file is None and address is None:
        raise CommandError(f"--{what}-format {kind} needs --{what}-schema FILE or --schema-registry URL")
    if file is not None:
        message, schema = _read_schema(kind, file)
        return ValueFormat(kind, schema, message or (options.message if what == "value" else None), address)
    assert address is not None
    subject = getattr(options, f"{what}_subject")
    if subject is None:
        if len(options.topic) != 1:
            raise CommandError(f"several topics have several schemas: name one with --{what}-subject")
        subject = f"{options.topic[0]}-{what}"
    return registered_format(kind, address, subject, options.message if what == "value" else None)


def _registry(options: argparse.Namespace) -> RegistryAddress:
    from tailrace.client.security.tls_settings import Tls
    from tailrace.spark.typed.schemas.registry import RegistryAddress

    credentials = None
    if options.registry_credentials is not None:
        credentials = _read(options.registry_credentials).decode("utf-8", "replace").strip()
    tls = (
        None if options.registry_ca is None else Tls(authorities=_read(options.registry_ca).decode("utf-8", "replace"))
    )
    try:
        return RegistryAddress.parse(options.schema_registry, credentials, tls)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _read_schema(kind: str, file: str) -> tuple[str | None, bytes]:
    """Return the message of a Protobuf schema, if one is named, and the content of the file."""
    message, at, path = file.partition("@")
    if kind == "protobuf" and at:
        return message, _read(path)
    return None, _read(file)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(_MAX_FILE + 1)
    if len(data) > _MAX_FILE:
        raise CommandError(f"{path} has more than {_MAX_FILE:,} bytes")
    return data
