"""`tailrace acls`: list, add and remove entries of access control lists."""

from __future__ import annotations

import argparse
from typing import Any

from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.client.access.acls import add_acls, list_acls, remove_acls
from tailrace.model.acls import (
    ANY,
    CLUSTER_NAME,
    MATCH,
    Acl,
    AclFilter,
    AclResource,
    Operation,
    PatternType,
    Permission,
)

_EVERYTHING = AclFilter(ANY, None, ANY, None, None, ANY, ANY)


def run_list(options: argparse.Namespace) -> int:
    wanted = _filter(options)
    with connected(options) as cluster:
        acls = list_acls(cluster, wanted)
    if options.json:
        print_lines(json_document({"acls": [_json(acl) for acl in acls]}))
    else:
        _show(acls, "no entry matches")
    return 0


def run_add(options: argparse.Namespace) -> int:
    _check_principal(options.principal)
    resource, name = _resource(options)
    pattern = PatternType.PREFIXED if options.prefixed else PatternType.LITERAL
    if options.prefixed and (options.cluster or name == "*"):
        raise CommandError("--prefixed needs the prefix of a name, such as --topic orders-")
    acls = [
        Acl(
            resource,
            name,
            pattern,
            options.principal,
            options.host,
            operation,
            Permission.DENY if options.deny else Permission.ALLOW,
        )
        for operation in dict.fromkeys(options.operation)
    ]
    with connected(options) as cluster:
        add_acls(cluster, acls)
    if options.json:
        print_lines(json_document({"added": [_json(acl) for acl in acls]}))
    else:
        _show(acls, "")
    return 0


def run_remove(options: argparse.Namespace) -> int:
    wanted = _filter(options)
    if wanted == _EVERYTHING:
        raise CommandError("name the entries to remove, with --principal, --topic, --operation or another filter")
    with connected(options) as cluster:
        acls = remove_acls(cluster, wanted) if options.yes else list_acls(cluster, wanted)
    if options.json:
        print_lines(json_document({"acls": [_json(acl) for acl in acls], "removed": options.yes}))
        return 0
    _show(acls, "no entry matches")
    if acls:
        count = count_text(len(acls), "entry", "entries")
        print_lines(f"{count} removed" if options.yes else f"nothing was changed; add --yes to remove {count}")
    return 0


def _check_principal(principal: str | None) -> None:
    if principal is not None:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise CommandError(f"--principal {principal!r} is not TYPE:NAME, such as User:alice")


def _resource(options: argparse.Namespace) -> tuple[AclResource, str]:
    """Return the resource that the options name."""
    if options.cluster:
        return AclResource.CLUSTER, CLUSTER_NAME
    for kind in AclResource:
        name = getattr(options, kind.name.lower(), None)
        if isinstance(name, str):
            if not name:
                raise CommandError(f"--{kind.name.lower().replace('_', '-')} has an empty name")
            return kind, name
    raise AssertionError("the parser requires a resource")


def _filter(options: argparse.Namespace) -> AclFilter:
    _check_principal(options.principal)
    names = (options.topic, options.group, options.transactional_id, options.delegation_token, options.user)
    resource: int = ANY
    name = None
    pattern: int = ANY
    if options.cluster or any(one is not None for one in names):
        resource, name = _resource(options)
        pattern = PatternType.LITERAL
    if options.prefixed:
        pattern = PatternType.PREFIXED
    if options.applying:
        if name is None:
            raise CommandError("--applying needs the name of a resource, such as --topic orders")
        pattern = MATCH
    return AclFilter(
        resource=resource,
        name=name,
        pattern=pattern,
        principal=options.principal,
        host=options.host,
        operation=ANY if options.operation is None else options.operation,
        permission=Permission.DENY if options.deny else ANY,
    )


def _show(acls: list[Acl], nothing: str) -> None:
    if not acls:
        print_lines(nothing)
        return
    rows = [
        (
            acl.principal,
            _words(Permission, acl.permission),
            _words(Operation, acl.operation),
            _words(AclResource, acl.resource),
            f"{acl.name}*" if acl.pattern == PatternType.PREFIXED else acl.name,
            acl.host,
        )
        for acl in acls
    ]
    print_lines(*table(["<PRINCIPAL", "<PERMISSION", "<OPERATION", "<RESOURCE", "<NAME", "<HOST"], rows))


def _words(kind: type[Operation] | type[AclResource] | type[Permission], code: int) -> str:
    """Return the name of a code, or its number if it is unknown."""
    return kind(code).name.lower().replace("_", "-") if code in list(kind) else str(code)


def _json(acl: Acl) -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "permission": _words(Permission, acl.permission),
        "operation": _words(Operation, acl.operation),
        "resourceType": _words(AclResource, acl.resource),
        "name": acl.name,
        "pattern": "prefixed" if acl.pattern == PatternType.PREFIXED else "literal",
        "host": acl.host,
    }
