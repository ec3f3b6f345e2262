"""Options of `migrate`."""

from __future__ import annotations

from tailrace.cli.parsing.options import Parsers, described


def add_migrate(commands: Parsers) -> None:
    migrate = described(
        commands.add_parser("migrate", help="turn a standalone node into the first broker of a cluster"),
        """
        Turn a standalone node (broker and controller in one, of Tailrace or Apache Kafka) into a broker of a cluster
        with controllers of Apache Kafka. Topics, configs, quotas, ACLs, credentials, groups, offsets and transactions
        are kept: the controllers start with the node's metadata.

        A node that is only a controller (process.roles=controller) hands its metadata over in the same way: the
        brokers below it continue below the new controllers.

        Stop the node first. The command writes to the directory of --to: one directory with a controller.properties
        for each controller, a broker.properties for the node, and a copy of the old metadata log. If a migration is
        interrupted, run the same command again to resume it.
        """,
        """
        examples:
          tailrace migrate --data ./data --controller 3000@127.0.0.1:9093 --to ./cluster --dry-run
          tailrace migrate --data ./data --controller 3000@127.0.0.1:9093 --to ./cluster
          tailrace migrate --config server.properties --to ./cluster \\
              --controller 3000@c1:9093 --controller 3001@c2:9093 --controller 3002@c3:9093
        """,
    )
    migrate.add_argument(
        "--data", metavar="DIR", action="append", help="data directory of the node (log.dirs; may be repeated)"
    )
    migrate.add_argument("--config", metavar="FILE", help="server.properties of the node, if it has one")
    migrate.add_argument(
        "-o",
        dest="override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="setting that overrides --config (may be repeated)",
    )
    migrate.add_argument(
        "--controller",
        metavar="ID@HOST:PORT",
        action="append",
        required=True,
        help="controller of the new cluster (may be repeated); its id must not be in use",
    )
    migrate.add_argument(
        "--to",
        metavar="DIR",
        required=True,
        help="directory to write the controllers' directories and the properties files to",
    )
    migrate.add_argument(
        "--quorum",
        choices=("dynamic", "static"),
        help="dynamic: voters are stored in the metadata log and can be added and removed later; static: voters are "
        "set in controller.quorum.voters (default: the quorum type of the node; dynamic for Tailrace)",
    )
    migrate.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
    migrate.set_defaults(run="tailrace.cli.cluster.migrate:run")
