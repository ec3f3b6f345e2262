"""The parser of the command line: every command with its options and its help.

Each parser names the function that runs its command as `module:function`. Help is shown without importing the command.
"""

from __future__ import annotations

import argparse

import tailrace
from tailrace.cli.admin.admin_arguments import add_configs, add_offsets, add_topics
from tailrace.cli.admin.groups_arguments import add_groups
from tailrace.cli.admin.transactions_arguments import add_transactions
from tailrace.cli.cluster.cluster_arguments import add_cluster_noun
from tailrace.cli.cluster.migrate_arguments import add_migrate
from tailrace.cli.jobs.job_arguments import add_job
from tailrace.cli.log.log_arguments import add_log
from tailrace.cli.options import Parsers, described
from tailrace.cli.records.records_arguments import add_consume, add_produce
from tailrace.cli.serving.serving_arguments import add_explain, add_serve, add_top


def build_parser() -> argparse.ArgumentParser:
    parser = described(
        argparse.ArgumentParser(prog="tailrace"),
        "A Kafka-compatible broker in Python whose logs can be queried directly from Spark.",
        """
        examples:
          tailrace serve --data ./data --port 9092     start a broker for Kafka clients
          tailrace topics create orders                create a topic on it (or on any Kafka cluster)
          echo hello | tailrace produce orders         write a record
          tailrace consume orders --follow             read records as they arrive
          tailrace tour                                take a guided tour of the log, in a temporary directory
          tailrace log ls /var/lib/kafka               list the partitions in a data directory
          tailrace log cat /var/lib/kafka --topic orders --json
          tailrace log explain /var/lib/kafka/orders-0 --offset 4711

        The `tailrace log` commands read data directories; they work with and without a running broker.
        Exit status: 0 success, 1 problems found or request refused, 2 wrong usage or not found, 3 internal error.
        """,
    )
    parser.add_argument("--version", action="version", version=f"tailrace {tailrace.__version__}")
    nouns = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_serve(nouns)
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
    add_migrate(nouns)
    add_log(nouns)
    add_job(nouns)
    _add_tour(nouns)
    return parser


def _add_tour(nouns: Parsers) -> None:
    tour = described(
        nouns.add_parser("tour", help="a guided tour of the log: write, roll, look up, explain a read"),
        "Write a topic, roll segments, look records up by offset and by time, explain a read, and show the files.",
        """
        examples:
          tailrace tour
          tailrace tour /tmp/tour
        """,
    )
    tour.add_argument("directory", metavar="DIR", nargs="?", help="directory to write to (default: a temporary one)")
    tour.set_defaults(run="tailrace.cli.tour:run")
