"""Options of `tailrace users`."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, described
from tailrace.model.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS

DEFAULT_MECHANISM = "SCRAM-SHA-512"
DEFAULT_ITERATIONS = 8_192


def add_users(commands: Parsers) -> None:
    users = described(
        commands.add_parser("users", help="list, set and remove SCRAM users"),
        """
        Show and change the SCRAM users of a cluster (Tailrace or Apache Kafka). A password is read from a file, from
        standard input or from a prompt; it is never an argument.
        """,
        """
        examples:
          tailrace users list
          tailrace users set alice
          tailrace users set alice --password-file alice.txt --mechanism SCRAM-SHA-256
          tailrace users remove alice
        """,
    )
    verbs = users.add_subparsers(title="verbs", metavar="VERB", required=True)
    listing = described(
        verbs.add_parser("list", help="list users with their mechanisms"),
        "List the SCRAM users with their mechanisms and iterations.",
        """
        examples:
          tailrace users list
          tailrace users list --json | jq -r '.users[].name'
        """,
    )
    _finish(listing, "list")
    _add_set(verbs)
    remove = described(
        verbs.add_parser("remove", help="remove credentials of a user"),
        "Remove the SCRAM credentials of a user: all, or those of one mechanism. Open connections stay open.",
        """
        examples:
          tailrace users remove alice
          tailrace users remove alice --mechanism SCRAM-SHA-256
        """,
    )
    remove.add_argument("user", metavar="NAME", help="name of the user")
    remove.add_argument("--mechanism", choices=tuple(MECHANISMS), help="only this mechanism (default: all)")
    _finish(remove, "remove")


def _add_set(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("set", help="create a user, or change the password"),
        """
        Set the password of a SCRAM user, and create the user if it does not exist. Without --password-file the password
        is asked for at a terminal, or read from standard input. The cluster gets a salted hash of it.
        """,
        """
        examples:
          tailrace users set alice
          tailrace users set alice --password-file /run/secrets/alice
          pass show kafka/alice | tailrace users set alice --password-file -
        """,
    )
    parser.add_argument("user", metavar="NAME", help="name of the user")
    parser.add_argument(
        "--password-file", metavar="FILE", help="file whose only line is the password; -: standard input"
    )
    parser.add_argument(
        "--mechanism",
        choices=tuple(MECHANISMS),
        default=DEFAULT_MECHANISM,
        help=f"mechanism that the user logs in with (default: {DEFAULT_MECHANISM})",
    )
    parser.add_argument(
        "--iterations",
        metavar="N",
        type=iterations,
        default=DEFAULT_ITERATIONS,
        help=f"number of hash iterations (default: {DEFAULT_ITERATIONS})",
    )
    _finish(parser, "set")


def _finish(parser: argparse.ArgumentParser, verb: str) -> None:
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run=f"tailrace.cli.access.users:run_{verb}")


def iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)
