"""The words of `migrate`."""

from __future__ import annotations

from tailrace.cli.options import Parsers, described


def add_migrate(nouns: Parsers) -> None:
    migrate = described(
        nouns.add_parser("migrate", help="make a node that is alone the first broker of a cluster"),
        """
        Make a node that is broker and controller in one, Tailrace's or Apache Kafka's, a broker below controllers of
        Apache Kafka. Topics, configs, quotas, ACLs, credentials, groups, offsets and transactions stay as they are; the
        controllers begin with all that the node knew.

        DIR gets a directory for each controller, with its controller.properties, a broker.properties for the node, and
        a copy of the metadata log as it was. The node has to be stopped. A migration that was interrupted is run again,
        with the same words, and goes on.
        """,
        """
        examples:
          tailrace migrate --data ./data --controller 3000@127.0.0.1:9093 --to ./cluster --dry-run
          tailrace migrate --data ./data --controller 3000@127.0.0.1:9093 --to ./cluster
          tailrace migrate --config server.properties --to ./cluster \\
              --controller 3000@c1:9093 --controller 3001@c2:9093 --controller 3002@c3:9093
        """,
    )
    migrate.add_argument("--data", metavar="DIR", action="append", help="the node's data (may be repeated): log.dirs")
    migrate.add_argument("--config", metavar="FILE", help="the node's server.properties, if it has one")
    migrate.add_argument(
        "-o", dest="override", metavar="KEY=VALUE", action="append", default=[], help="a setting (may be repeated)"
    )
    migrate.add_argument(
        "--controller",
        metavar="ID@HOST:PORT",
        action="append",
        required=True,
        help="a controller of the cluster (may be repeated); its id must be new",
    )
    migrate.add_argument("--to", metavar="DIR", required=True, help="where directories and properties are written")
    migrate.add_argument(
        "--quorum",
        choices=("dynamic", "static"),
        help="voters in the log, which can be added and removed later, or in controller.quorum.voters "
        "(default: as the node has it; Tailrace's are dynamic)",
    )
    migrate.add_argument("--dry-run", action="store_true", help="only say what would be done")
    migrate.set_defaults(run="tailrace.cli.cluster.migrate:run")
