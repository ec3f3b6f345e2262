"""Options of `tailrace transactions`."""

from __future__ import annotations

from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, described, minutes, natural


def add_transactions(commands: Parsers) -> None:
    transactions = described(
        commands.add_parser("transactions", help="list, describe and abort transactions, and find hanging ones"),
        "Show the transactions of a cluster (Tailrace or Apache Kafka), and abort hanging ones.",
        """
        examples:
          tailrace transactions list --state Ongoing
          tailrace transactions describe orders-7
          tailrace transactions find-hanging                       exits with status 1 if it finds any
          tailrace transactions abort orders-3 --start-offset 8120
        """,
    )
    verbs = transactions.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_list(verbs)
    _add_describe(verbs)
    _add_find_hanging(verbs)
    _add_abort(verbs)


def _add_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="list transactional ids, coordinators and states"),
        "List the transactional ids of all coordinators, with the state of each.",
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
        help="list only transactions in this state: Empty, Ongoing, PrepareCommit, … (may be repeated)",
    )
    parser.add_argument(
        "--producer-id",
        metavar="N",
        type=natural,
        action="append",
        help="list only transactions of this producer id (may be repeated)",
    )
    parser.add_argument(
        "--longer-than",
        metavar="MS",
        type=natural,
        help="list only transactions that have been open for more than MS milliseconds (needs Kafka 3.8 or later)",
    )
    parser.add_argument(
        "--pattern",
        metavar="REGEX",
        help="list only transactional ids that match this expression completely (needs Kafka 4.1 or later)",
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_list")


def _add_describe(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("describe", help="show state, producer, timeout and partitions"),
        "Show the coordinator's state of transactional ids, and the partitions of their open transactions.",
        """
        examples:
          tailrace transactions describe orders-7
          tailrace transactions describe orders-7 --json | jq '.transactions[0].partitions'
        """,
    )
    parser.add_argument("id", metavar="ID", nargs="+", help="transactional id")
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_describe")


def _add_find_hanging(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("find-hanging", help="find transactions that their coordinator has lost"),
        """
        Find transactions that are open in a partition but unknown to their coordinator, so that it will never end them.
        Consumers with read_committed cannot read past a hanging transaction until it is aborted.
        """,
        """
        examples:
          tailrace transactions find-hanging
          tailrace transactions find-hanging --topic orders --partition 3 --longer-than-minutes 5
        """,
    )
    parser.add_argument("--topic", metavar="TOPIC", action="append", help="search only this topic (may be repeated)")
    parser.add_argument(
        "--partition",
        metavar="N",
        type=natural,
        action="append",
        help="search only this partition of the topic (may be repeated)",
    )
    parser.add_argument("--broker", metavar="ID", type=natural, help="search only partitions that this broker leads")
    parser.add_argument(
        "--longer-than-minutes",
        metavar="N",
        type=minutes,
        default=15.0,
        help="report only transactions whose last write is more than N minutes old; N should not be less than the "
        "brokers' transaction.max.timeout.ms (default: 15)",
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_find_hanging")


def _add_abort(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("abort", help="abort a hanging transaction in one partition"),
        """
        Abort a transaction in one partition. Use it only for hanging transactions: neither the coordinator nor the
        transaction's other partitions are notified.
        """,
        """
        examples:
          tailrace transactions abort orders-3 --start-offset 8120
        """,
    )
    parser.add_argument("partition", metavar="TOPIC-NUMBER", help="partition, for example orders-3")
    parser.add_argument(
        "--start-offset", metavar="N", type=natural, required=True, help="first offset of the transaction"
    )
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.admin.transactions:run_abort")
