"""Options of `tailrace acls`."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, add_yes, described
from tailrace.model.acls import Operation

OPERATIONS = {one.name.replace("_", "").lower(): one for one in Operation}
_OPERATION_NAMES = ", ".join(one.name.title().replace("_", "") for one in Operation)


def add_acls(commands: Parsers) -> None:
    acls = described(
        commands.add_parser("acls", help="list, add and remove entries of access control lists"),
        "Show and change the access control lists of a cluster (Tailrace or Apache Kafka) that has an authorizer.",
        """
        examples:
          tailrace acls list
          tailrace acls add --principal User:alice --operation Read --topic orders
          tailrace acls add --principal User:alice --operation Read --group billing- --prefixed
          tailrace acls remove --principal User:alice --yes
        """,
    )
    verbs = acls.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_list(verbs)
    _add_add(verbs)
    _add_remove(verbs)


def _add_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="list entries"),
        "List the entries that match all given options; without options, list all.",
        """
        examples:
          tailrace acls list
          tailrace acls list --principal User:alice
          tailrace acls list --topic orders --applying --json
        """,
    )
    _add_filter(parser)
    _finish(parser, "list")


def _add_add(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("add", help="add entries"),
        """
        Allow operations of a principal on one resource, or deny them. One entry is added for each --operation. An
        entry that exists already is left unchanged.
        """,
        f"""
        operations: {_OPERATION_NAMES}

        examples:
          tailrace acls add --principal User:alice --operation Read --operation Describe --topic orders
          tailrace acls add --principal User:alice --operation Read --group billing- --prefixed
          tailrace acls add --principal 'User:*' --operation Write --topic audit --deny
          tailrace acls add --principal User:admin --operation All --cluster
        """,
    )
    parser.add_argument("--principal", metavar="TYPE:NAME", required=True, help="such as User:alice; User:*: everyone")
    parser.add_argument(
        "--operation",
        metavar="NAME",
        type=operation,
        action="append",
        required=True,
        help="operation, see below (may be repeated)",
    )
    _add_resource(parser, is_required=True)
    parser.add_argument(
        "--prefixed",
        action="store_true",
        help="the name is a prefix: the entry applies to all names that begin with it",
    )
    parser.add_argument("--host", metavar="ADDRESS", default="*", help="address of the client (default: any)")
    parser.add_argument("--deny", action="store_true", help="deny the operations instead of allowing them")
    _finish(parser, "add")


def _add_remove(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("remove", help="remove entries"),
        "Remove the entries that match all given options. Without --yes they are listed, and nothing is changed.",
        """
        examples:
          tailrace acls remove --principal User:alice --topic orders
          tailrace acls remove --principal User:alice --topic orders --yes
        """,
    )
    _add_filter(parser)
    add_yes(parser, "remove the entries")
    _finish(parser, "remove")


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--principal", metavar="TYPE:NAME", help="only entries of this principal, such as User:alice")
    parser.add_argument("--operation", metavar="NAME", type=operation, help="only entries for this operation")
    parser.add_argument("--host", metavar="ADDRESS", help="only entries for this address of a client")
    parser.add_argument("--deny", action="store_true", help="only entries that deny")
    _add_resource(parser, is_required=False)
    pattern = parser.add_mutually_exclusive_group()
    pattern.add_argument("--prefixed", action="store_true", help="only entries whose pattern is exactly this prefix")
    pattern.add_argument(
        "--applying",
        action="store_true",
        help="all entries that apply to the named resource, with prefixes and * (default: only its own entries)",
    )


def _add_resource(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    resource = parser.add_mutually_exclusive_group(required=is_required)
    resource.add_argument("--topic", metavar="NAME", help="topic; *: all topics")
    resource.add_argument("--group", metavar="NAME", help="group; *: all groups")
    resource.add_argument("--transactional-id", metavar="NAME", help="transactional id; *: all transactional ids")
    resource.add_argument("--delegation-token", metavar="ID", help="delegation token; *: all delegation tokens")
    resource.add_argument("--user", metavar="TYPE:NAME", help="user whose delegation tokens are meant; *: all users")
    resource.add_argument("--cluster", action="store_true", help="the cluster itself")


def _finish(parser: argparse.ArgumentParser, verb: str) -> None:
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run=f"tailrace.cli.access.acls:run_{verb}")


def operation(text: str) -> Operation:
    found = OPERATIONS.get(text.replace("_", "").replace("-", "").lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an operation; use one of {_OPERATION_NAMES}")
    return found
