"""`tailrace configs`: show the effective configs of a topic or broker with their sources, and change single keys."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from tailrace.cli.connection.connecting import connected, split_setting
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_document, print_lines, table
from tailrace.client.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigSource,
    Operation,
    Resource,
    alter_configs,
    describe_configs,
)

_SOURCES = {
    ConfigSource.TOPIC_CONFIG: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "broker (dynamic)",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers (dynamic)",
    ConfigSource.STATIC_BROKER_CONFIG: "broker (server.properties)",
    ConfigSource.DEFAULT_CONFIG: "default",
}
_SIGNS = {Operation.SET: "=", Operation.APPEND: "+=", Operation.SUBTRACT: "-="}


def run_describe(options: argparse.Namespace) -> int:
    resource = _resource(options)
    with connected(options) as cluster:
        entries = describe_configs(cluster, resource, options.key or None, with_documentation=options.explain)
    missing = sorted(set(options.key) - {entry.name for entry in entries})
    if missing:
        raise CommandError(f"{resource} has no config {' or '.join(missing)}")
    if not (options.all or options.key):
        entries = [entry for entry in entries if not entry.is_default]
    if options.json:
        document = {"resource": _resource_json(resource), "configs": [_entry_json(entry) for entry in entries]}
        print_lines(json_document(document))
    elif entries:
        rows = [(entry.name, _value_text(entry), _source_text(entry)) for entry in entries]
        lines = table(["<KEY", "<VALUE", "<FROM"], rows)
        if options.explain:
            lines = _with_documentation(lines, entries)
        print_lines(*lines)
    else:
        print_lines(f"{resource}: all configs have their default values (--all lists them)")
    return 0


def run_set(options: argparse.Namespace) -> int:
    return _alter(options, [_change(text) for text in options.setting])


def run_unset(options: argparse.Namespace) -> int:
    return _alter(options, [ConfigChange(key, Operation.DELETE) for key in options.key])


def _alter(options: argparse.Namespace, changes: list[ConfigChange]) -> int:
    resource = _resource(options)
    with connected(options) as cluster:
        alter_configs(cluster, resource, changes, validate_only=options.dry_run)
    if options.json:
        named = [{"name": one.name, "operation": one.operation.name, "value": one.value} for one in changes]
        print_lines(json_document({"resource": _resource_json(resource), "changes": named, "dryRun": options.dry_run}))
        return 0
    for change in changes:
        text = f"{change.name} reset to its default"
        if change.operation is not Operation.DELETE:
            text = f"{change.name}{_SIGNS[change.operation]}{change.value}"
        print_lines(f"{resource}: {'valid, not changed: ' if options.dry_run else ''}{text}")
    return 0


def _resource(options: argparse.Namespace) -> Resource:
    if options.topic is not None:
        return Resource.topic(options.topic)
    return Resource.broker(None if options.broker == "default" else options.broker)


def _change(text: str) -> ConfigChange:
    """Parse KEY=VALUE, or for lists KEY+=VALUE and KEY-=VALUE."""
    key, value = split_setting(text)
    for end, operation in (("+", Operation.APPEND), ("-", Operation.SUBTRACT)):
        if key.endswith(end) and len(key) > 1:
            return ConfigChange(key[:-1].strip(), operation, value)
    return ConfigChange(key, Operation.SET, value)


def _value_text(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.is_sensitive else entry.value


def _source_text(entry: ConfigEntry) -> str:
    text = _SOURCES.get(entry.source, entry.source.name.lower().replace("_", " "))
    return f"{text}, read-only" if entry.is_read_only else text


def _with_documentation(lines: list[str], entries: list[ConfigEntry]) -> list[str]:
    """Return the lines of a table with the documentation of each entry below its row."""
    found = lines[:1]
    for line, entry in zip(lines[1:], entries, strict=True):
        found.append(line)
        if entry.documentation:
            found += textwrap.wrap(entry.documentation, 100, initial_indent="    ", subsequent_indent="    ")
    return found


def _resource_json(resource: Resource) -> dict[str, Any]:
    return {"type": resource.type.name.lower(), "name": resource.name or None}


def _entry_json(entry: ConfigEntry) -> dict[str, Any]:
    documentation = {} if entry.documentation is None else {"documentation": entry.documentation}
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type.name,
        "readOnly": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [{"name": name, "value": value, "source": source.name} for name, value, source in entry.synonyms],
        **documentation,
    }
