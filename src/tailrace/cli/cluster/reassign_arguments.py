"""Options of `tailrace reassign` and `tailrace elect`."""

from __future__ import annotations

import argparse

from tailrace.cli.admin.groups_arguments import topic_partitions
from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, add_yes, described, positive, seconds


def add_reassign(commands: Parsers) -> None:
    reassign = described(
        commands.add_parser(
            "reassign", help="move partitions to other brokers: plan, apply, status, cancel, unthrottle"
        ),
        """
        Move the replicas of partitions to other brokers. A plan is a JSON file in the format of Kafka's
        kafka-reassign-partitions. Brokers copy the replicas in the background.
        """,
        """
        examples:
          tailrace reassign plan --topic orders --current > before.json
          tailrace reassign plan --topic orders --brokers 1,2,4 > plan.json
          tailrace reassign apply plan.json --throttle 10000000
          tailrace reassign status
          tailrace reassign unthrottle plan.json
        """,
    )
    verbs = reassign.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_plan(verbs)
    _add_apply(verbs)
    _add_status(verbs)
    _add_cancel(verbs)
    unthrottle = described(
        verbs.add_parser("unthrottle", help="remove the throttle of a finished reassignment"),
        "Remove the throttle that `apply --throttle` set: the rates of all brokers and the lists of the plan's topics.",
        """
        examples:
          tailrace reassign unthrottle plan.json
        """,
    )
    unthrottle.add_argument("plan", metavar="PLAN", help="plan that was applied; -: standard input")
    _finish(unthrottle, "unthrottle")


def _add_plan(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("plan", help="print a plan"),
        """
        Print a plan that spreads the partitions of topics evenly over brokers and moves as few replicas as possible.
        With --current print the present replicas; that plan undoes a later one.
        """,
        """
        examples:
          tailrace reassign plan --topic orders --brokers 1,2,4 > plan.json
          tailrace reassign plan --topic orders --replication-factor 3 > plan.json
          tailrace reassign plan --topic orders --current > before.json
        """,
    )
    parser.add_argument(
        "--topic", metavar="TOPIC", action="append", required=True, help="topic to move (may be repeated)"
    )
    parser.add_argument("--brokers", metavar="ID,ID", type=broker_ids, help="brokers to use (default: all)")
    parser.add_argument(
        "--replication-factor", metavar="N", type=positive, help="new number of replicas (default: keep)"
    )
    parser.add_argument("--current", action="store_true", help="print the present replicas instead of a new plan")
    add_cluster(parser)
    parser.set_defaults(run="tailrace.cli.cluster.reassign:run_plan")


def _add_apply(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("apply", help="start the moves of a plan"),
        """
        Start to move partitions to the replicas of a plan. With --wait the command returns when all moves have ended,
        and removes the throttle; without it, run `tailrace reassign unthrottle` after the end.
        """,
        """
        examples:
          tailrace reassign apply plan.json
          tailrace reassign apply plan.json --throttle 10000000 --wait 3600
          tailrace reassign apply plan.json --dry-run
        """,
    )
    parser.add_argument("plan", metavar="PLAN", help="file with the plan; -: standard input")
    add_moving(parser)
    _finish(parser, "apply")


def add_moving(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that moves partitions."""
    parser.add_argument(
        "--throttle", metavar="N", type=positive, help="limit of each broker's copying, in bytes per second"
    )
    parser.add_argument("--wait", metavar="SECONDS", type=seconds, help="wait up to this time for the end of all moves")
    parser.add_argument("--dry-run", action="store_true", help="show the moves, and change nothing")


def _add_status(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("status", help="show running moves"),
        "Show the partitions that are being moved. With a plan, the exit status is 1 until all its moves end.",
        """
        examples:
          tailrace reassign status
          tailrace reassign status plan.json
        """,
    )
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="file with the plan; -: standard input")
    _finish(parser, "status")


def _add_cancel(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("cancel", help="cancel running moves"),
        """
        Cancel moves: the partitions keep the replicas that they had before. Without --yes the running moves are shown,
        and nothing is changed. The throttle of these topics and of all brokers is removed.
        """,
        """
        examples:
          tailrace reassign cancel plan.json --yes
          tailrace reassign cancel --yes
        """,
    )
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="cancel only moves of this plan (default: all)")
    add_yes(parser, "cancel the moves")
    _finish(parser, "cancel")


def _finish(parser: argparse.ArgumentParser, verb: str) -> None:
    add_cluster(parser)
    add_json(parser, "one JSON document")
    parser.set_defaults(run=f"tailrace.cli.cluster.reassign:run_{verb}")


def add_elect(commands: Parsers) -> None:
    elect = described(
        commands.add_parser("elect", help="elect leaders: preferred, or unclean"),
        "Elect leaders of partitions in a cluster (Tailrace or Apache Kafka).",
        """
        examples:
          tailrace elect preferred
          tailrace elect preferred --topic orders:0,3
          tailrace elect unclean --topic orders:3 --yes
        """,
    )
    verbs = elect.add_subparsers(title="verbs", metavar="VERB", required=True)
    preferred = described(
        verbs.add_parser("preferred", help="make the first replica of partitions their leader"),
        "Make the first replica of each partition its leader, if it is in sync. No records are lost.",
        """
        examples:
          tailrace elect preferred
          tailrace elect preferred --topic orders:0,3
        """,
    )
    preferred.set_defaults(kind="PREFERRED", yes=True)
    unclean = described(
        verbs.add_parser("unclean", help="let an out-of-sync replica lead a partition without a leader"),
        """
        Let a replica that is not in sync lead a partition whose in-sync replicas are all lost. Records that only the
        lost replicas had are LOST. Without --yes the partitions without a leader are shown, and nothing is changed.
        """,
        """
        examples:
          tailrace elect unclean --topic orders:3
          tailrace elect unclean --topic orders:3 --yes
        """,
    )
    unclean.set_defaults(kind="UNCLEAN")
    add_yes(unclean, "elect, and lose records")
    for parser, is_required in ((preferred, False), (unclean, True)):
        parser.add_argument(
            "--topic",
            metavar="TOPIC[:N,N]",
            type=topic_partitions,
            action="append",
            default=[],
            required=is_required,
            help="topic, or some of its partitions (may be repeated" + ("" if is_required else "; default: all") + ")",
        )
        add_cluster(parser)
        add_json(parser, "one JSON document")
        parser.set_defaults(run="tailrace.cli.cluster.elect:run")


def broker_ids(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words) or len(set(words)) < len(words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different broker ids, such as 1,2,3")
    return [int(word) for word in words]
