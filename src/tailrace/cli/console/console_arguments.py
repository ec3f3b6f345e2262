"""Options of `console`, and those with which `serve` starts one."""

from __future__ import annotations

import argparse
from typing import Final

from tailrace.cli.parsing.options import Parsers, add_cluster, described, seconds_or_zero

DEFAULT_LISTEN: Final = "127.0.0.1:8080"
DEFAULT_LAG_EVERY_S: Final = 30.0
PREFIX: Final = "--console-"  # of the options of `serve`


def add_console(commands: Parsers) -> None:
    parser = described(
        commands.add_parser("console", help="serve a web page that shows a cluster and its logs"),
        """
        Serve a web page that shows a cluster (Tailrace or Apache Kafka): brokers, topics, records, groups,
        transactions, security. With --data it draws the logs of a data directory, segment by segment, and explains
        reads. With --metrics it shows the traffic of a Tailrace broker.

        The page gets its data as a tailrace command prints it with --json, and shows that command. It is read-only
        without --console-write. Only this machine can open it, unless it listens on another address with --login
        and TLS.
        """,
        """
        examples:
          tailrace console --bootstrap 127.0.0.1:9092
          tailrace console --listen 127.0.0.1:8081 --data ./data --metrics 127.0.0.1:9404
          tailrace console --listen :8443 --login --command-config client.properties \\
              --tls-certificate console.pem --tls-key console.key --host-name kafka.example.com
        """,
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=DEFAULT_LISTEN,
        help=f"address to listen on (default: {DEFAULT_LISTEN})",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        action="append",
        default=[],
        help="data directory to draw: that of a broker on this machine (may be repeated)",
    )
    parser.add_argument(
        "--metrics", metavar="URL", help="metrics address of a Tailrace broker, HOST:PORT or http://HOST:PORT"
    )
    _add_contents(parser)
    group = parser.add_argument_group("console security")
    group.add_argument("--console-write", action="store_true", help="allow changes (default: the page only reads)")
    _add_security(group)
    parser.add_argument("--ends-with-input", action="store_true", help=argparse.SUPPRESS)
    add_cluster(parser)
    parser.set_defaults(run="tailrace.cli.console.console:run")


def add_console_options(serve: argparse.ArgumentParser) -> None:
    """Add the options with which `serve` starts a console: those of `console`, with a prefix."""
    group = serve.add_argument_group("console")
    group.add_argument(
        "--console",
        metavar="HOST:PORT",
        nargs="?",
        const=DEFAULT_LISTEN,
        help=f"serve a web page that shows the broker and its logs (default: off; without an address {DEFAULT_LISTEN})",
    )
    group.add_argument("--console-write", action="store_true", help="allow changes in it (default: it only reads)")
    group.add_argument(
        "--console-config",
        metavar="FILE",
        help="client properties with which the console connects to the broker",
    )
    _add_contents(group, PREFIX)
    _add_security(group, PREFIX)


def _add_contents(group: argparse._ActionsContainer, prefix: str = "--") -> None:
    group.add_argument(
        f"{prefix}schema-registry", metavar="URL", help="schema registry that decodes Avro, Protobuf and JSON values"
    )
    group.add_argument(
        f"{prefix}lag-every",
        metavar="SECONDS",
        type=seconds_or_zero,
        help="interval at which the lag of all groups is recorded; one day is kept; 0: off "
        f"(default: {DEFAULT_LAG_EVERY_S:g}; always off with {prefix}login)",
    )


def _add_security(group: argparse._ActionsContainer, prefix: str = "--") -> None:
    group.add_argument(
        f"{prefix}login",
        action="store_true",
        help="visitors log in as users of the cluster (SASL PLAIN or SCRAM), and may do what its ACLs allow them",
    )
    group.add_argument(f"{prefix}tls-certificate", metavar="FILE", help="certificate chain in PEM format: serve https")
    group.add_argument(
        f"{prefix}tls-key", metavar="FILE", help="its private key in PEM format, if it is in another file"
    )
    group.add_argument(
        f"{prefix}host-name",
        metavar="NAME",
        action="append",
        default=[],
        help="additional host name under which browsers reach the console (may be repeated)",
    )
