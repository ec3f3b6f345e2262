"""`tailrace quotas`: list, set and remove quotas of users, client ids and addresses."""

from __future__ import annotations

import argparse
from typing import Any

from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_document, print_lines, table
from tailrace.client.access.client_quotas import ENTITY_TYPES, QuotaEntity, alter_quotas, list_quotas


def run_list(options: argparse.Namespace) -> int:
    wanted = _parts(options)
    with connected(options) as cluster:
        quotas = list_quotas(cluster, wanted)
    if options.json:
        entries = [{"entity": dict(entity.parts), "quotas": values} for entity, values in quotas.items()]
        print_lines(json_document({"quotas": entries}))
    elif quotas:
        rows = [(entity, key, _number(value)) for entity, values in quotas.items() for key, value in values.items()]
        print_lines(*table(["<ENTITY", "<QUOTA", "VALUE"], rows))
    else:
        print_lines("there are no such quotas" if wanted else "there are no quotas")
    return 0


def run_set(options: argparse.Namespace) -> int:
    entity = _entity(options)
    with connected(options) as cluster:
        alter_quotas(cluster, entity, dict(options.setting), validate_only=options.dry_run)
    _report(options, entity, dict(options.setting))
    return 0


def run_remove(options: argparse.Namespace) -> int:
    entity = _entity(options)
    with connected(options) as cluster:
        existing = list_quotas(cluster, dict(entity.parts)).get(entity, {})
        keys = list(dict.fromkeys(options.key or existing))
        missing = [key for key in keys if key not in existing]
        if missing or not keys:
            raise CommandError(f"{entity} has no quota{''.join(f' {key}' for key in missing[:1])}")
        changes = dict.fromkeys(keys)
        alter_quotas(cluster, entity, changes, validate_only=options.dry_run)
    _report(options, entity, changes)
    return 0


def _report(options: argparse.Namespace, entity: QuotaEntity, changes: dict[str, Any]) -> None:
    if options.json:
        document = {"entity": dict(entity.parts), "changes": changes, "dryRun": options.dry_run}
        print_lines(json_document(document))
        return
    for key, value in changes.items():
        text = f"{key} removed" if value is None else f"{key}={_number(value)}"
        print_lines(f"{entity}: {'valid, not changed: ' if options.dry_run else ''}{text}")


def _parts(options: argparse.Namespace) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for kind in ENTITY_TYPES:
        field = kind.replace("-", "_")
        if getattr(options, f"default_{field}"):
            found[kind] = None
        elif getattr(options, field) is not None:
            if not getattr(options, field):
                raise CommandError(f"--{kind} has an empty name; use --default-{kind} for the default")
            found[kind] = getattr(options, field)
    if "ip" in found and len(found) > 1:
        raise CommandError("--ip cannot be combined with a user or a client id")
    return found


def _entity(options: argparse.Namespace) -> QuotaEntity:
    parts = _parts(options)
    if not parts:
        raise CommandError(
            "name the entity: --user, --client-id or --ip, or --default-user, --default-client-id or --default-ip"
        )
    return QuotaEntity.of(parts)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
