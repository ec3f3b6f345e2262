"""The words of `topics`, `configs` and `offsets`; what all commands share that talk to a cluster."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from tailrace.cli.arguments import add_json, described, positive, timestamp

Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_METRICS = "127.0.0.1:9404"


def add_cluster_commands(nouns: Parsers) -> None:
    """Everything that talks to a cluster."""
    from tailrace.cli.admin.groups_arguments import add_groups
    from tailrace.cli.admin.transactions_arguments import add_transactions
    from tailrace.cli.cluster.cluster_arguments import add_cluster_noun
    from tailrace.cli.records.records_arguments import add_consume, add_produce

    add_cluster_noun(nouns)
    add_topics(nouns)
    add_configs(nouns)
    add_produce(nouns)
    add_consume(nouns)
    add_offsets(nouns)
    add_groups(nouns)
    add_transactions(nouns)
    add_top(nouns)
    add_explain(nouns)


def add_topics(nouns: Parsers) -> None:
    topics = described(
        nouns.add_parser("topics", help="list, describe, create, delete and alter topics"),
        "List, describe, create, delete and alter the topics of a cluster, Apache Kafka's or Tailrace's.",
        """
        examples:
          tailrace topics list
          tailrace topics create orders --partitions 6 --config retention.ms=86400000
          tailrace topics describe orders --bootstrap kafka-1:9092,kafka-2:9092
          tailrace topics alter orders --partitions 12
          tailrace topics delete orders
        """,
    )
    verbs = topics.add_subparsers(title="what to do", metavar="VERB", required=True)
    _add_topics_list(verbs)
    _add_topics_describe(verbs)
    _add_topics_create(verbs)
    _add_topics_delete(verbs)
    _add_topics_alter(verbs)


def _add_topics_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="names, partitions, replicas, ids"),
        "List topics.",
        """
        examples:
          tailrace topics list
          tailrace topics list --internal --json | jq -r '.topics[].name'
        """,
    )
    parser.add_argument("--internal", action="store_true", help="also Kafka's own topics, such as __consumer_offsets")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_list")


def _add_topics_describe(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("describe", help="partitions with leaders and replicas, and the topic's own configs"),
        """
        Show topics with their partitions: leader, leader epoch, replicas, those in sync and those on dead brokers or
        disks. Configs are shown where the topic has its own; `tailrace configs describe --topic` shows all that count.
        """,
        """
        examples:
          tailrace topics describe orders
          tailrace topics describe --unhealthy
          tailrace topics describe orders --json | jq '.topics[0].partitions[].leader'
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="which (default: all but Kafka's own)")
    parser.add_argument(
        "--unhealthy", action="store_true", help="only partitions without a leader or with replicas out of sync"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_describe")


def _add_topics_create(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("create", help="make topics"),
        "Create topics. Numbers that are left out are the broker's own (num.partitions, default.replication.factor).",
        """
        examples:
          tailrace topics create orders
          tailrace topics create orders --partitions 6 --replication-factor 3 --config min.insync.replicas=2
          tailrace topics create users --config cleanup.policy=compact --if-not-exists
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="+", help="the name")
    parser.add_argument("--partitions", metavar="N", type=positive, default=-1, help="how many")
    parser.add_argument("--replication-factor", metavar="N", type=positive, default=-1, help="how many copies of each")
    parser.add_argument(
        "--config", metavar="KEY=VALUE", action="append", default=[], help="a config of the topic (may be repeated)"
    )
    parser.add_argument("--if-not-exists", action="store_true", help="a topic that is there is left as it is")
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it could be done")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_create")


def _add_topics_delete(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("delete", help="remove topics with their records"),
        "Delete topics with all their records. There is no way back.",
        """
        examples:
          tailrace topics delete orders
          tailrace topics delete orders users --if-exists
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="+", help="the name")
    parser.add_argument("--if-exists", action="store_true", help="a topic that is not there is no error")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_delete")


def _add_topics_alter(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("alter", help="more partitions"),
        """
        Give topics more partitions. Keys are then spread anew: records of a key that come later may go to another
        partition than those before. For configs see `tailrace configs set`.
        """,
        """
        examples:
          tailrace topics alter orders --partitions 12
          tailrace topics alter orders --partitions 12 --dry-run
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="+", help="the name")
    parser.add_argument("--partitions", metavar="N", type=positive, required=True, help="how many there shall be")
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it could be done")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_alter")


def add_configs(nouns: Parsers) -> None:
    configs = described(
        nouns.add_parser("configs", help="describe, set and unset configs of topics and brokers"),
        "Show and change the configs of topics and brokers. Only the keys that are named are changed.",
        """
        examples:
          tailrace configs describe --topic orders
          tailrace configs describe --broker 1 --all
          tailrace configs set --topic orders retention.ms=86400000 cleanup.policy=compact
          tailrace configs set --broker default log.cleaner.threads=2
          tailrace configs unset --topic orders retention.ms
        """,
    )
    verbs = configs.add_subparsers(title="what to do", metavar="VERB", required=True)
    describe = described(
        verbs.add_parser("describe", help="what counts, and where it comes from"),
        "Show the configs that are not at their default, or those that are named, with where each value comes from.",
        """
        examples:
          tailrace configs describe --topic orders
          tailrace configs describe --topic orders retention.ms segment.bytes
          tailrace configs describe --broker 1 --all --json
        """,
    )
    describe.add_argument("key", metavar="KEY", nargs="*", help="only these")
    describe.add_argument("--all", action="store_true", help="also what is at its default")
    _add_resource(describe)
    describe.set_defaults(run="tailrace.cli.admin.configs:run_describe")
    change = described(
        verbs.add_parser("set", help="give keys a value"),
        "Set configs; all of them, or none if one is refused. KEY+=VALUE and KEY-=VALUE add to and take from a list.",
        """
        examples:
          tailrace configs set --topic orders retention.ms=86400000 max.message.bytes=2000000
          tailrace configs set --topic orders cleanup.policy+=compact
          tailrace configs set --broker 1 log.cleaner.threads=2 --dry-run
        """,
    )
    change.add_argument("setting", metavar="KEY=VALUE", nargs="+", help="what to set")
    change.add_argument("--dry-run", action="store_true", help="only ask whether it could be done")
    _add_resource(change)
    change.set_defaults(run="tailrace.cli.admin.configs:run_set")
    unset = described(
        verbs.add_parser("unset", help="back to the default"),
        "Remove configs of a topic or broker, so that the default counts again.",
        """
        examples:
          tailrace configs unset --topic orders retention.ms max.message.bytes
          tailrace configs unset --broker default log.cleaner.threads
        """,
    )
    unset.add_argument("key", metavar="KEY", nargs="+", help="what to remove")
    unset.add_argument("--dry-run", action="store_true", help="only ask whether it could be done")
    _add_resource(unset)
    unset.set_defaults(run="tailrace.cli.admin.configs:run_unset")


def _add_resource(parser: argparse.ArgumentParser) -> None:
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument("--topic", metavar="NAME", help="of this topic")
    whose.add_argument("--broker", metavar="ID", type=broker_id, help="of this broker; `default` for all brokers")
    add_cluster(parser)
    add_json(parser, "one JSON document")


def add_offsets(nouns: Parsers) -> None:
    parser = described(
        nouns.add_parser("offsets", help="where partitions start and end, and which offset a time has"),
        """
        Show the earliest and the latest offset of partitions: the first record there is, and the place of the next one
        to come (with read_committed: of the first that is undecided). BETWEEN is how many offsets lie between; there
        may be fewer records, because transactions and compaction leave gaps.

        TIME is milliseconds since 1970 or ISO 8601, in UTC if it names no zone.
        """,
        """
        examples:
          tailrace offsets orders
          tailrace offsets orders --at 2026-01-31T12:00:00Z
          tailrace offsets --max-timestamp --json
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="which (default: all but Kafka's own)")
    parser.add_argument("--at", metavar="TIME", type=timestamp, help="also the first record of this time or later")
    parser.add_argument("--max-timestamp", action="store_true", help="also the record with the largest timestamp")
    add_partition(parser)
    add_isolation(parser)
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.offsets:run")


def add_top(nouns: Parsers) -> None:
    parser = described(
        nouns.add_parser("top", help="what a broker does right now: traffic, requests, latencies, topics"),
        """
        Show what happens, refreshed in place on a terminal, until Ctrl-C.

        With --metrics, of a Tailrace broker that was started with --metrics-port: throughput, requests and their times
        by API, topics by traffic, connections, memory. Without, of any Kafka cluster: how fast its topics grow, from
        their end offsets and their sizes on disk.

        P50 and P99 are of the time from a request being read to its answer being sent, so a Fetch that waits for
        records has its max.wait.ms in it; LOCAL is the broker's own work per request, WAIT what it waited for others.
        """,
        """
        examples:
          tailrace serve --data ./data --metrics-port 9404
          tailrace top --metrics 127.0.0.1:9404
          tailrace top --bootstrap kafka-1:9092 --interval 5
          tailrace top --metrics 127.0.0.1:9404 --once
          tailrace top --metrics 127.0.0.1:9404 --json | jq '.rates.bytes_in_per_s'
        """,
    )
    parser.add_argument("--metrics", metavar="URL", help="where the broker's metrics are: HOST:PORT will do")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, default=2.0, help="between two pictures (default: 2)"
    )
    parser.add_argument("--count", metavar="N", type=positive, help="how many pictures (default: until interrupted)")
    parser.add_argument("--once", action="store_true", help="one picture, as plain text: the same as --count 1")
    add_cluster(parser)
    add_json(parser, "one JSON object per picture and line")
    parser.set_defaults(run="tailrace.cli.serving.top:run")


def add_explain(nouns: Parsers) -> None:
    explain = described(
        nouns.add_parser("explain", help="how a running broker comes to an answer: fetch"),
        "Let a running broker tell how it comes to an answer. `tailrace log explain` does so for a directory.",
    )
    verbs = explain.add_subparsers(title="what to explain", metavar="VERB", required=True)
    parser = described(
        verbs.add_parser("fetch", help="session, authorisation, waiting, budget, index probes, slice"),
        """
        Let a broker carry out a fetch as it would for a consumer, and tell each step: session, authorisation, how long
        it waited and what woke it, the budget, the bound of the isolation level, the segment, the probes of its index,
        the walk over batch headers, the slice that would be sent, and aborted transactions. No records are shown.

        The broker has to serve metrics: `tailrace serve --metrics-port 9404`. The exit status is 1 if the partition
        could not be read.
        """,
        """
        examples:
          tailrace explain fetch orders --offset 4711
          tailrace explain fetch orders --partition 2 --offset 4711 --isolation read_committed --max-bytes 65536
          tailrace explain fetch orders --offset 5000 --max-wait-ms 30000       waits at the end of the log
          tailrace explain fetch orders --offset 4711 --json | jq '.partitions[0].read.slice'
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", help="the name")
    parser.add_argument("--partition", metavar="N", type=natural, default=0, help="which (default: 0)")
    parser.add_argument("--offset", metavar="N", type=natural, required=True, help="where to read from")
    parser.add_argument("--max-bytes", metavar="N", type=natural, help="for the whole answer (default: 52428800)")
    parser.add_argument("--min-bytes", metavar="N", type=natural, help="what to wait for (default: 1)")
    parser.add_argument("--max-wait-ms", metavar="N", type=natural, help="how long to wait, up to 60000 (default: 0)")
    add_isolation(parser)
    parser.add_argument(
        "--metrics",
        metavar="URL",
        default=DEFAULT_METRICS,
        help=f"where the broker serves metrics (default: {DEFAULT_METRICS})",
    )
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.serving.explain_fetch:run")


# ------------------------------------------------------------------------------------------------------ what is shared


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST:PORT",
        dest="bootstrap",
        default=DEFAULT_BOOTSTRAP,
        help=f"a broker of the cluster, or several with commas between (default: {DEFAULT_BOOTSTRAP})",
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="settings of Kafka's clients for a secured listener: security.protocol, ssl.…, sasl.…",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="how long to try (default: 30)"
    )


def add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partition", metavar="N", type=natural, action="append", help="only this partition (may be repeated)"
    )


def add_isolation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        default="read_uncommitted",
        help="read_committed ends before the first open transaction (default: read_uncommitted)",
    )


def natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number from zero on")
    return int(text)


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return number


def broker_id(text: str) -> int | str:
    return text if text == "default" else natural(text)
