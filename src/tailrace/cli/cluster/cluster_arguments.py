"""The words of `cluster`: up and status."""

from __future__ import annotations

from tailrace.cli.options import Parsers, add_cluster, add_json, described, natural, port, positive, seconds


def add_cluster_noun(nouns: Parsers) -> None:
    cluster = described(
        nouns.add_parser("cluster", help="up: a cluster on this machine, for trying it; status: how any cluster is"),
        "Start a cluster on this machine, and see how a cluster is, Apache Kafka's or Tailrace's.",
        """
        examples:
          tailrace cluster up --brokers 3
          tailrace cluster status
          tailrace cluster status --bootstrap kafka-1:9092,kafka-2:9092 --watch
        """,
    )
    verbs = cluster.add_subparsers(title="what to do", metavar="VERB", required=True)
    _add_up(verbs)
    _add_status(verbs)


def _add_up(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("up", help="controllers of Apache Kafka and brokers of ours, on this machine"),
        """
        Start a cluster on this machine, for trying it: a controller of Apache Kafka, or several, and Tailrace brokers,
        until Ctrl-C. Everything listens on 127.0.0.1. Started again it goes on with the same data.

        A controller needs Java 17 or newer. Its jars are fetched once, from Maven Central or the repository that
        TAILRACE_MAVEN_REPOSITORY names, and are kept in the user's cache; --kafka-home does without.
        """,
        """
        examples:
          tailrace cluster up
          tailrace cluster up --brokers 5 --controllers 3 --data /tmp/five
          tailrace cluster up -o num.partitions=6 -o auto.create.topics.enable=false --metrics-port 9404
          tailrace cluster up --kafka-home /opt/kafka
        """,
    )
    parser.add_argument("--brokers", metavar="N", type=positive, help="how many (default: 3, or as before)")
    parser.add_argument("--controllers", metavar="N", type=positive, help="how many (default: 1, or as before)")
    parser.add_argument(
        "--data", metavar="DIR", default=".tailrace-cluster", help="where everything lies (default: .tailrace-cluster)"
    )
    parser.add_argument(
        "--port",
        metavar="PORT",
        type=port,
        help="of the first broker; the others follow, controllers are 100 above (default: 9092, or as before)",
    )
    parser.add_argument("--metrics-port", metavar="PORT", type=port, help="of the first broker; the others follow")
    parser.add_argument(
        "-o",
        dest="override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of all brokers (may be repeated)",
    )
    parser.add_argument("--kafka-home", metavar="DIR", help="an installation of Apache Kafka, for the controllers")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what brokers write to their log files (default: info)",
    )
    add_json(parser, "one JSON document when clients can connect, instead of the table")
    parser.set_defaults(run="tailrace.cli.cluster.cluster_up:run")


def _add_status(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("status", help="brokers, controllers, replicas out of sync, the lag of followers"),
        """
        Show how a cluster is: its brokers, the quorum of its controllers, partitions without a leader, under-replicated
        or under min.insync.replicas, reassignments under way, and how far each follower lags.

        A lag is the end of the leader's log less the end of the follower's, in records. Every broker is asked for the
        ends of its own logs, followers first and leaders after them: a lag is never told too small, and under load too
        large by what was written in between. `?` stands for what could not be asked.

        Exit status: 0 if all is well, 1 if something is not, 2 if no broker answers.
        """,
        """
        examples:
          tailrace cluster status
          tailrace cluster status --bootstrap kafka-1:9092 --all
          tailrace cluster status --watch
          tailrace cluster status --wait 60 --brokers 3
          tailrace cluster status --json --all | jq '.partitions[] | select(.lag | any(. > 1000))'
        """,
    )
    parser.add_argument("--all", action="store_true", help="every partition, not only those that want attention")
    parser.add_argument("--brokers", metavar="N", type=natural, default=0, help="fewer active brokers are a problem")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--watch", metavar="SECONDS", type=seconds, nargs="?", const=2.0, help="again and again (default: every 2 s)"
    )
    how.add_argument("--wait", metavar="SECONDS", type=seconds, help="until all is well, for so long at most")
    add_cluster(parser)
    add_json(parser, "one JSON document; with --watch one a line")
    parser.set_defaults(run="tailrace.cli.cluster.cluster_status:run")
