"""The words of `tailrace transactions`."""

from __future__ import annotations

from tailrace.cli.options import Parsers, add_cluster, add_json, described, natural


def add_transactions(nouns: Parsers) -> None:
    transactions = described(
        nouns.add_parser("transactions", help="list, describe, find hanging and abort transactions"),
        "Look at the transactions of a cluster, Apache Kafka's or Tailrace's, and end those that hang.",
        """
        examples:
          tailrace transactions list --state Ongoing
          tailrace transactions describe orders-7
          tailrace transactions find-hanging                       exit status 1 if there is one
          tailrace transactions abort orders-3 --start-offset 8120
        """,
    )
    verbs = transactions.add_subparsers(title="what to do", metavar="VERB", required=True)
    _add_list(verbs)
    _add_describe(verbs)
    _add_find_hanging(verbs)
    _add_abort(verbs)


def _add_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="transactional ids, coordinators, states"),
        "List the transactional ids that coordinators know, with the state of each.",
        """
        examples:
          tailrace transactions list
          tailrace transactions list --state Ongoing --longer-than 60000
          tailrace transactions list --pattern 'orders-.*' --json
        """,
    )
    parser.add_argument(
        "--state",
        metavar="STATE",
        action="append",
        help="only in this state: Empty, Ongoing, PrepareCommit, … (may be repeated)",
    )
    parser.add_argument(
        "--producer-id", metavar="N", type=natural, action="append", help="only of this producer (may be repeated)"
    )
    parser.add_argument(
        "--longer-than", metavar="MS", type=natural, help="only what was begun longer ago (Kafka 3.8 or later)"
    )
    parser.add_argument("--pattern", metavar="REGEX", help="only ids that this matches as a whole (Kafka 4.1 or later)")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_list")


def _add_describe(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("describe", help="state, producer, timeout, partitions"),
        "Show what the coordinator knows of transactional ids, and which partitions are part of what is open.",
        """
        examples:
          tailrace transactions describe orders-7
          tailrace transactions describe orders-7 --json | jq '.transactions[0].partitions'
        """,
    )
    parser.add_argument("id", metavar="ID", nargs="+", help="the transactional id")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_describe")


def _add_find_hanging(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("find-hanging", help="transactions that nobody will end"),
        """
        Find transactions that are open in a partition and that their coordinator does not know of. Consumers of
        committed records wait before such a one until it is aborted.
        """,
        """
        examples:
          tailrace transactions find-hanging
          tailrace transactions find-hanging --topic orders --partition 3 --longer-than-minutes 5
        """,
    )
    parser.add_argument("--topic", metavar="TOPIC", action="append", help="only here (may be repeated)")
    parser.add_argument("--partition", metavar="N", type=natural, action="append", help="only here (may be repeated)")
    parser.add_argument("--broker", metavar="ID", type=natural, help="only what this broker leads")
    parser.add_argument(
        "--longer-than-minutes",
        metavar="N",
        type=float,
        default=15.0,
        help="only where nothing was written for longer; transaction.max.timeout.ms of the brokers (default: 15)",
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_find_hanging")


def _add_abort(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("abort", help="end a transaction that hangs, in one partition"),
        """
        Abort a transaction in one partition. Its coordinator and its other partitions hear nothing of it: this is for
        transactions that hang.
        """,
        """
        examples:
          tailrace transactions abort orders-3 --start-offset 8120
        """,
    )
    parser.add_argument("partition", metavar="TOPIC-NUMBER", help="the partition")
    parser.add_argument(
        "--start-offset", metavar="N", type=natural, required=True, help="where the transaction begins there"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_abort")
