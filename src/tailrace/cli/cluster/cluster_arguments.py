"""Options of `cluster`: up, status and queries."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, described, natural, port, positive, seconds
from tailrace.local_cluster.cluster_plan import Controllers


def add_cluster_noun(commands: Parsers) -> None:
    cluster = described(
        commands.add_parser(
            "cluster", help="start a cluster on this machine for trials; show the health of any cluster"
        ),
        "Start a cluster on this machine for trials, or show the health of a cluster (Tailrace or Apache Kafka).",
        """
        examples:
          tailrace cluster up --brokers 3
          tailrace cluster status
          tailrace cluster status --bootstrap kafka-1:9092,kafka-2:9092 --watch
        """,
    )
    verbs = cluster.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_up(verbs)
    _add_status(verbs)
    _add_queries(verbs)


def _add_up(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("up", help="start a controller and brokers on this machine"),
        """
        Start a cluster on this machine for trials: one controller and several brokers, each a process. It runs until
        Ctrl-C and listens on 127.0.0.1 only. The next start uses the same data.

        With --controllers kafka, or a number, the controllers are Apache Kafka's and need Java 17 or newer. Their jars
        are downloaded once, from Maven Central or from the repository in TAILRACE_MAVEN_REPOSITORY, and kept in the
        user's cache. With --kafka-home nothing is downloaded.
        """,
        """
        examples:
          tailrace cluster up
          tailrace cluster up --brokers 5 --controllers 3 --data /tmp/five
          tailrace cluster up -o num.partitions=6 -o auto.create.topics.enable=false --metrics-port 9404
          tailrace cluster up --kafka-home /opt/kafka
        """,
    )
    parser.add_argument(
        "--brokers", metavar="N", type=positive, help="number of brokers (default: 3, or that of the last start)"
    )
    parser.add_argument(
        "--controllers",
        metavar="KIND",
        type=_controllers,
        help="tailrace: one controller of Tailrace; kafka, or a number: controllers of Apache Kafka "
        "(default: tailrace, or those of the last start)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=".tailrace-cluster",
        help="directory for data, configs and log files of all nodes (default: .tailrace-cluster)",
    )
    _add_node_options(parser)
    add_json(parser, "one JSON document when clients can connect, instead of the table")
    parser.set_defaults(run="tailrace.cli.cluster.cluster_up:run")


def _add_node_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        metavar="PORT",
        type=port,
        help="port of the first broker; other brokers use the ports after it, controllers those from PORT+100 on "
        "(default: 9092, or that of the last start)",
    )
    parser.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=port,
        help="port of the first broker's metrics; other brokers use the ports after it (default: no metrics)",
    )
    parser.add_argument(
        "-o",
        dest="override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="setting of all brokers (may be repeated)",
    )
    parser.add_argument("--kafka-home", metavar="DIR", help="installed Apache Kafka to run the controllers with")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="lowest level that brokers write to their log files (default: info)",
    )


def _controllers(text: str) -> Controllers:
    try:
        return Controllers.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_status(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("status", help="show brokers, controllers, out-of-sync replicas and the lag of followers"),
        """
        Show the health of a cluster: its brokers, its controller quorum, partitions that are offline, under-replicated
        or under min.insync.replicas, running reassignments, and the lag of each follower.

        A lag is the log end offset of the leader minus that of the follower. Followers are queried before leaders. So a
        lag is never shown too small; under load it also counts the records written between the two queries. `?` means
        that the broker did not answer.

        Exit status: 0 healthy, 1 unhealthy, 2 no broker reachable.
        """,
        """
        examples:
          tailrace cluster status
          tailrace cluster status --bootstrap kafka-1:9092 --all
          tailrace cluster status --watch
          tailrace cluster status --topic orders --watch 1
          tailrace cluster status --wait 60 --brokers 3
          tailrace cluster status --json --all | jq '.partitions[] | select(.lag | any(. > 1000))'
        """,
    )
    parser.add_argument("--all", action="store_true", help="list every partition, also healthy ones")
    parser.add_argument(
        "--topic",
        metavar="TOPIC",
        action="append",
        default=[],
        help="read and list only the partitions of this topic, with their high watermarks (may be repeated)",
    )
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=natural,
        default=0,
        help="number of active brokers required for a healthy cluster (default: 0)",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--watch",
        metavar="SECONDS",
        type=seconds,
        nargs="?",
        const=2.0,
        help="refresh at this interval until Ctrl-C (default: every 2 s)",
    )
    mode.add_argument(
        "--wait", metavar="SECONDS", type=seconds, help="wait up to this time for the cluster to become healthy"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document; with --watch one per line")
    parser.set_defaults(run="tailrace.cli.cluster.cluster_status:run")


def _add_queries(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("queries", help="list Spark queries that read and write the cluster, and table exports"),
        """
        List Spark queries that read and write topics with `format("tailrace")`, and exports to tables: their lag, last
        micro-batch and last commit.

        A stream is listed if it has the option commitOffsetsToGroup, an export if it has --group, and a query that
        writes if it writes exactly once. Queries with Spark's own Kafka connector leave no trace in a cluster.
        """,
        """
        examples:
          tailrace cluster queries
          tailrace cluster queries --json | jq '.reads[] | select(.lagSeconds > 60)'
        """,
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.cluster.spark_queries:run")
