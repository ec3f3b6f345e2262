"""Options of `tailrace shards`."""

from __future__ import annotations

from tailrace.cli.cluster.reassign_arguments import add_moving
from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, described


def add_shards(nouns: Parsers) -> None:
    shards = described(
        nouns.add_parser("shards", help="spread partitions over the shards of a node"),
        "Manage the shards of a node that was started with `tailrace serve --shards N`.",
        """
        examples:
          tailrace shards rebalance --dry-run
          tailrace shards rebalance --wait 3600
        """,
    )
    verbs = shards.add_subparsers(title="verbs", metavar="VERB", required=True)
    parser = described(
        verbs.add_parser("rebalance", help="move partitions so that each shard has about the same number"),
        """
        Move partitions so that each shard has about the same number of each topic. New topics are spread by themselves;
        this command is for the topics that were there before the number of shards has grown.

        Internal topics move too. Records are copied from one folder to another while clients use them.
        `tailrace reassign status` shows running moves, and `tailrace reassign cancel` cancels them.
        """,
        """
        examples:
          tailrace shards rebalance --dry-run
          tailrace shards rebalance --topic orders --throttle 50000000
          tailrace shards rebalance --wait 3600
        """,
    )
    parser.add_argument(
        "--topic", metavar="TOPIC", action="append", default=[], help="topic to spread (default: all; may be repeated)"
    )
    add_moving(parser)
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run="tailrace.cli.serving.rebalance_shards:run")
