"""Options of `topics`, `configs` and `offsets`."""

from __future__ import annotations

import argparse

from tailrace.cli.options import (
    Parsers,
    add_cluster,
    add_isolation,
    add_json,
    add_partition,
    broker_id,
    described,
    positive,
    timestamp,
)


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
