"""Options of `topics`, `configs` and `offsets`."""

from __future__ import annotations

import argparse

from tailrace.cli.parsing.command_parser import CommandParser
from tailrace.cli.parsing.options import (
    DRY_RUN,
    Parsers,
    add_cluster,
    add_isolation,
    add_json,
    add_partition,
    add_yes,
    broker_id,
    described,
    positive,
    timestamp,
)
from tailrace.cli.records.start_place import start_place


def add_topics(commands: Parsers) -> None:
    topics = described(
        commands.add_parser("topics", help="list, describe, create, delete, alter and trim topics"),
        "List, describe, create, delete, alter and trim the topics of a cluster (Tailrace or Apache Kafka).",
        """
        examples:
          tailrace topics list
          tailrace topics create orders --partitions 6 --config retention.ms=86400000
          tailrace topics describe orders --bootstrap kafka-1:9092,kafka-2:9092
          tailrace topics alter orders --partitions 12
          tailrace topics trim orders --before 2026-01-31 --yes
          tailrace topics delete orders
        """,
    )
    verbs = topics.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_topics_list(verbs)
    _add_topics_describe(verbs)
    _add_topics_create(verbs)
    _add_topics_delete(verbs)
    _add_topics_alter(verbs)
    _add_topics_trim(verbs)


def _add_topics_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="list topics: names, partitions, replicas, ids"),
        "List the topics of a cluster with their number of partitions, replication factor and topic id.",
        """
        examples:
          tailrace topics list
          tailrace topics list --internal --json | jq -r '.topics[].name'
        """,
    )
    parser.add_argument(
        "--internal", action="store_true", help="list internal topics as well, such as __consumer_offsets"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_list")


def _add_topics_describe(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("describe", help="show partitions with leaders and replicas, and the topic's own configs"),
        """
        Show the partitions of topics: leader, leader epoch, replicas, in-sync replicas, and offline replicas (on dead
        brokers or disks). Only configs that are set on the topic are shown; `tailrace configs describe --topic NAME
        --all` shows all effective configs.
        """,
        """
        examples:
          tailrace topics describe orders
          tailrace topics describe --unhealthy
          tailrace topics describe orders --json | jq '.topics[0].partitions[].leader'
        """,
    )
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="*", help="name of a topic (default: all topics that are not internal)"
    )
    parser.add_argument(
        "--unhealthy", action="store_true", help="show only partitions without a leader or with out-of-sync replicas"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_describe")


def _add_topics_create(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("create", help="create topics"),
        "Create topics. The broker's num.partitions and default.replication.factor apply if an option is omitted.",
        """
        examples:
          tailrace topics create orders
          tailrace topics create orders --partitions 6 --replication-factor 3 --config min.insync.replicas=2
          tailrace topics create users --config cleanup.policy=compact --if-not-exists
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="+", help="name of a topic")
    parser.add_argument("--partitions", metavar="N", type=positive, default=-1, help="number of partitions")
    parser.add_argument(
        "--replication-factor", metavar="N", type=positive, default=-1, help="number of replicas of each partition"
    )
    parser.add_argument(
        "--config", metavar="KEY=VALUE", action="append", default=[], help="config of the topic (may be repeated)"
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="leave existing topics unchanged, without an error"
    )
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_create")


def _add_topics_delete(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("delete", help="delete topics with their records"),
        "Delete topics with all their records. This cannot be undone.",
        """
        examples:
          tailrace topics delete orders
          tailrace topics delete orders users --if-exists
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="+", help="name of a topic")
    parser.add_argument("--if-exists", action="store_true", help="ignore topics that do not exist")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_delete")


def _add_topics_alter(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("alter", help="add partitions to topics"),
        """
        Increase the number of partitions of topics. Later records of a key may then go to another partition than
        earlier ones. To change configs, use `tailrace configs set`.
        """,
        """
        examples:
          tailrace topics alter orders --partitions 12
          tailrace topics alter orders --partitions 12 --dry-run
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", nargs="+", help="name of a topic")
    parser.add_argument(
        "--partitions", metavar="N", type=positive, required=True, help="new total number of partitions"
    )
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.topics:run_alter")


def _add_topics_trim(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("trim", help="delete the oldest records of a topic"),
        """
        Delete the records of a topic before START. This cannot be undone. Without --yes the new first offsets are
        shown, and nothing is changed.

        START is an offset, `latest` (delete all records), -N to keep the last N offsets of each partition, or a time:
        @milliseconds since 1970, or ISO 8601 (UTC if it has no time zone).
        """,
        """
        examples:
          tailrace topics trim orders --before 2026-01-31T12:00:00Z
          tailrace topics trim orders --before 4711 --partition 0 --yes
          tailrace topics trim orders --before latest --yes
        """,
    )
    parser.add_argument("topic", metavar="TOPIC", help="name of the topic")
    parser.add_argument(
        "--before", metavar="START", type=start_place, required=True, help="first record to keep, see above"
    )
    add_partition(parser)
    add_yes(parser, "delete the records")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.trim:run")


def add_configs(commands: Parsers) -> None:
    configs = described(
        commands.add_parser("configs", help="describe, set and unset configs of topics and brokers"),
        "Show and change the configs of topics and brokers. Configs that you do not name are left unchanged.",
        """
        examples:
          tailrace configs describe --topic orders
          tailrace configs describe --broker 1 --all
          tailrace configs set --topic orders retention.ms=86400000 cleanup.policy=compact
          tailrace configs set --broker default log.cleaner.threads=2
          tailrace configs unset --topic orders retention.ms
        """,
    )
    verbs = configs.add_subparsers(title="verbs", metavar="VERB", required=True)
    describe = described(
        verbs.add_parser("describe", help="show effective values and their sources"),
        "Show configs with their effective value and its source: by default those that differ from their default.",
        """
        examples:
          tailrace configs describe --topic orders
          tailrace configs describe --topic orders retention.ms segment.bytes --explain
          tailrace configs describe --broker 1 --all --json
        """,
    )
    describe.add_argument("key", metavar="KEY", nargs="*", help="config to show, even if it has its default value")
    describe.add_argument("--all", action="store_true", help="show configs with default values as well")
    describe.add_argument("--explain", action="store_true", help="show what each config does (Kafka 2.6 or later)")
    _add_resource(describe)
    describe.set_defaults(run="tailrace.cli.admin.configs:run_describe")
    change = described(
        verbs.add_parser("set", help="set configs"),
        """
        Set configs of a topic or broker. If one is refused, none is changed. KEY+=VALUE adds a value to a list-valued
        config, KEY-=VALUE removes one.
        """,
        """
        examples:
          tailrace configs set --topic orders retention.ms=86400000 max.message.bytes=2000000
          tailrace configs set --topic orders cleanup.policy+=compact
          tailrace configs set --broker 1 log.cleaner.threads=2 --dry-run
        """,
    )
    change.add_argument("setting", metavar="KEY=VALUE", nargs="+", help="config and its new value")
    change.add_argument("--dry-run", action="store_true", help=DRY_RUN)
    _add_resource(change)
    change.set_defaults(run="tailrace.cli.admin.configs:run_set")
    unset = described(
        verbs.add_parser("unset", help="reset configs to their default"),
        "Remove configs of a topic or broker, so that their defaults apply again.",
        """
        examples:
          tailrace configs unset --topic orders retention.ms max.message.bytes
          tailrace configs unset --broker default log.cleaner.threads
        """,
    )
    unset.add_argument("key", metavar="KEY", nargs="+", help="config to remove")
    unset.add_argument("--dry-run", action="store_true", help=DRY_RUN)
    _add_resource(unset)
    unset.set_defaults(run="tailrace.cli.admin.configs:run_unset")


def _add_resource(parser: argparse.ArgumentParser) -> None:
    resource = parser.add_mutually_exclusive_group(required=True)
    resource.add_argument("--topic", metavar="TOPIC", help="topic whose configs are meant")
    resource.add_argument(
        "--broker", metavar="ID", type=broker_id, help="broker whose configs are meant; `default`: those of all brokers"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")


def add_offsets(commands: Parsers) -> None:
    parser = described(
        commands.add_parser("offsets", help="show first and last offsets of partitions, and the offset of a time"),
        """
        Show the earliest and the latest offset of partitions. EARLIEST is the offset of the first record. LATEST is the
        offset that the next record will get; with read_committed it is the last stable offset. SPAN is the
        difference. There may be fewer records than that, because transactions and compaction leave gaps.

        TIME is milliseconds since 1970, or ISO 8601 (UTC if it has no time zone).

        `tailrace offsets of-checkpoint DIR` shows the offsets in the checkpoint of a Spark stream.
        """,
        """
        examples:
          tailrace offsets orders
          tailrace offsets orders --at 2026-01-31T12:00:00Z
          tailrace offsets --max-timestamp --json
          tailrace offsets of-checkpoint ./checkpoints/orders
        """,
    )
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="*", help="name of a topic (default: all topics that are not internal)"
    )
    parser.add_argument("--at", metavar="TIME", type=timestamp, help="show the first record at or after this time")
    parser.add_argument("--max-timestamp", action="store_true", help="show the record with the largest timestamp")
    add_partition(parser)
    add_isolation(parser)
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.offsets:run")
    if isinstance(parser, CommandParser):
        _add_of_checkpoint(parser.add_verb("of-checkpoint"))


def _add_of_checkpoint(verb: argparse.ArgumentParser) -> None:
    parser = described(
        verb,
        """
        Show the offsets in the checkpoint of a Spark stream that reads with format("tailrace") or with Spark's own
        Kafka connector. DIR is a folder, or an address such as s3://bucket/prefix. Records before COMMITTED are
        processed. A batch that is planned and not committed is run again when the query restarts.

        The committed offsets can be written elsewhere: as offsets of a consumer group, or as JSON for the option
        startingOffsets. Stop the query first.
        """,
        """
        examples:
          tailrace offsets of-checkpoint ./checkpoints/orders
          tailrace offsets of-checkpoint ./checkpoints/orders --starting-offsets
          tailrace offsets of-checkpoint s3://lake/checkpoints/orders --to-group orders-app --yes
        """,
    )
    parser.add_argument("directory", metavar="DIR", help="checkpointLocation of the stream")
    parser.add_argument("--source", metavar="NAME", help="only this source of a query with several (0, 1, …)")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--to-group", metavar="NAME", help="commit the offsets to this consumer group")
    target.add_argument("--starting-offsets", action="store_true", help="print the value of startingOffsets")
    add_yes(parser, "commit the offsets of --to-group")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.checkpoint_offsets:run")
