"""Options of `tailrace quotas`."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.options import DRY_RUN, Parsers, add_cluster, add_json, described


def add_quotas(commands: Parsers) -> None:
    quotas = described(
        commands.add_parser("quotas", help="list, set and remove quotas of users, client ids and addresses"),
        "Show and change the quotas of a cluster (Tailrace or Apache Kafka). Other quotas are left unchanged.",
        """
        examples:
          tailrace quotas list
          tailrace quotas set --client-id loader producer_byte_rate=1000000
          tailrace quotas set --user alice --default-client-id consumer_byte_rate=2000000
          tailrace quotas remove --client-id loader
        """,
    )
    verbs = quotas.add_subparsers(title="verbs", metavar="VERB", required=True)
    listing = described(
        verbs.add_parser("list", help="list quotas"),
        "List the quotas of all entities, or of those with all given parts.",
        """
        examples:
          tailrace quotas list
          tailrace quotas list --user alice --json
        """,
    )
    _finish(listing, "list")
    _add_set(verbs)
    remove = described(
        verbs.add_parser("remove", help="remove quotas of one entity"),
        "Remove quotas of a user, client id or address: those that you name, or all.",
        """
        examples:
          tailrace quotas remove --client-id loader producer_byte_rate
          tailrace quotas remove --user alice
        """,
    )
    remove.add_argument("key", metavar="KEY", nargs="*", help="quota to remove (default: all of the entity)")
    remove.add_argument("--dry-run", action="store_true", help=DRY_RUN)
    _finish(remove, "remove")


def _add_set(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("set", help="set quotas of one entity"),
        """
        Set quotas of a user, a client id, both together, or an address. If one is refused, none is changed.

          producer_byte_rate, consumer_byte_rate    bytes per second
          request_percentage                        share of the broker's time, 100: one thread
          controller_mutation_rate                  created and deleted partitions per second
          connection_creation_rate                  new connections per second, of an address
        """,
        """
        examples:
          tailrace quotas set --client-id loader producer_byte_rate=1000000
          tailrace quotas set --default-user request_percentage=50
          tailrace quotas set --ip 192.0.2.7 connection_creation_rate=10
        """,
    )
    parser.add_argument("setting", metavar="KEY=VALUE", nargs="+", type=quota, help="quota and its new value")
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)
    _finish(parser, "set")


def _finish(parser: argparse.ArgumentParser, verb: str) -> None:
    for option, what in (("user", "user"), ("client-id", "client id"), ("ip", "address of clients")):
        names = parser.add_mutually_exclusive_group()
        names.add_argument(f"--{option}", metavar="NAME", help=what)
        names.add_argument(f"--default-{option}", action="store_true", help=f"every {what} without its own quota")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run=f"tailrace.cli.access.quotas:run_{verb}")


def quota(text: str) -> tuple[str, float]:
    """Parse KEY=VALUE with a positive number."""
    key, equals, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not equals or not key.strip() or not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a quota: write KEY=VALUE with a number above 0")
    return key.strip(), value
