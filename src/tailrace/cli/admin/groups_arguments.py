"""The words of `tailrace groups`."""

from __future__ import annotations

import argparse
import re

from tailrace.cli.options import Parsers, add_cluster, add_json, described, natural, timestamp

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?", re.I
)


def add_groups(nouns: Parsers) -> None:
    groups = described(
        nouns.add_parser("groups", help="list, describe, lag, reset and delete groups"),
        "Look at the groups of a cluster, Apache Kafka's or Tailrace's: who reads what, and how far behind.",
        """
        examples:
          tailrace groups list
          tailrace groups describe billing
          tailrace groups lag --max 10000                          exit status 1 if somebody is further behind
          tailrace groups reset billing --topic orders --to-earliest --execute
          tailrace groups delete billing
        """,
    )
    verbs = groups.add_subparsers(title="what to do", metavar="VERB", required=True)
    _add_list(verbs)
    _add_describe(verbs)
    _add_lag(verbs)
    _add_reset(verbs)
    _add_delete(verbs)
    _add_delete_offsets(verbs)


def _add_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="names, types, states"),
        "List groups.",
        """
        examples:
          tailrace groups list
          tailrace groups list --state empty --json | jq -r '.groups[].group'
        """,
    )
    parser.add_argument("--state", metavar="STATE", action="append", help="only in this state (may be repeated)")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_list")


def _add_describe(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("describe", help="members, partitions, committed offsets, lag"),
        """
        Show a group's members, and for each partition how far the group has read, where the partition ends, and who
        reads it. LAG is what lies between.
        """,
        """
        examples:
          tailrace groups describe billing
          tailrace groups describe billing --json | jq '.groups[0].partitions[] | select(.lag > 0)'
        """,
    )
    parser.add_argument("group", metavar="GROUP", nargs="+", help="the name")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_describe")


def _add_lag(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("lag", help="how far groups are behind, by topic"),
        """
        Show how many offsets groups are behind the ends of the topics they read: all partitions together, and the one
        that is furthest behind. With --max the exit status is 1 if any partition is further behind than that.
        """,
        """
        examples:
          tailrace groups lag
          tailrace groups lag billing shipping --json
          tailrace groups lag --max 10000 || page somebody
        """,
    )
    parser.add_argument("group", metavar="GROUP", nargs="*", help="the name (default: all groups)")
    parser.add_argument("--max", metavar="N", type=natural, help="how far behind is too far")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_lag")


def _add_reset(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("reset", help="where a group goes on reading"),
        """
        Change what a group has committed, so that its members go on somewhere else. The group must not have members
        meanwhile. Without --execute nothing is changed: the plan is shown. An offset outside a log is brought to its
        nearer end.

        A share group goes on at the offset as if it had read nothing after it.

        TIME is milliseconds since 1970 or ISO 8601, in UTC if it names no zone; DURATION is PnDTnHnMnS.
        """,
        """
        examples:
          tailrace groups reset billing --to-earliest                           everything it has committed
          tailrace groups reset billing --topic orders --to-datetime 2026-01-31T12:00:00Z --execute
          tailrace groups reset billing --topic orders:0,3 --shift-by -100 --execute
          tailrace groups reset billing --topic orders --by-duration PT2H --execute
        """,
    )
    parser.add_argument("group", metavar="GROUP", help="the name; there need not be one yet")
    parser.add_argument("--share", action="store_true", help="if there is none yet: it is to be a share group")
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:N,N]",
        type=topic_partitions,
        action="append",
        default=[],
        help="only this topic, or these partitions of it (may be repeated; default: what the group has committed)",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="the first record there is")
    where.add_argument("--to-latest", action="store_true", help="the end")
    where.add_argument("--to-current", action="store_true", help="where it is; the end where nothing is committed")
    where.add_argument("--to-offset", metavar="N", type=natural, help="this offset")
    where.add_argument("--to-datetime", metavar="TIME", type=timestamp, help="the first record of this time or later")
    where.add_argument("--by-duration", metavar="DURATION", type=duration_ms, help="so long ago")
    where.add_argument("--shift-by", metavar="N", type=integer, help="so many further, or back if negative")
    done = parser.add_mutually_exclusive_group()
    done.add_argument("--execute", action="store_true", help="do it")
    done.add_argument("--dry-run", action="store_true", help="only show the plan (the default)")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_reset")


def _add_delete(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("delete", help="forget groups, and what they have committed"),
        "Delete groups without members, with the offsets they have committed.",
        """
        examples:
          tailrace groups delete billing
          tailrace groups delete billing shipping --if-exists
        """,
    )
    parser.add_argument("group", metavar="GROUP", nargs="+", help="the name")
    parser.add_argument("--if-exists", action="store_true", help="a group that is not there is no error")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_delete")


def _add_delete_offsets(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("delete-offsets", help="forget how far a group has read topics"),
        "Forget what a group has committed for topics that none of its members reads; a share group must have none.",
        """
        examples:
          tailrace groups delete-offsets billing --topic orders
          tailrace groups delete-offsets billing --topic orders:0,3
        """,
    )
    parser.add_argument("group", metavar="GROUP", help="the name")
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:N,N]",
        type=topic_partitions,
        action="append",
        required=True,
        help="the topic, or some partitions of it, though not of a share group (may be repeated)",
    )
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_delete_offsets")


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_json(parser, "one JSON document")


def topic_partitions(text: str) -> tuple[str, frozenset[int] | None]:
    """A topic, or some partitions of one."""
    name, colon, numbers = text.partition(":")
    if not name or (colon and not all(one.isascii() and one.isdigit() for one in numbers.split(","))):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a topic nor TOPIC:N,N")
    return name, frozenset(map(int, numbers.split(","))) if colon else None


def integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


def duration_ms(text: str) -> int:
    """PnDTnHnMnS, as Java writes durations."""
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {name: float(part) for name, part in found.groupdict().items() if part}
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: give one like P7D, PT2H30M or PT15S")
    units = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    return int(sum(units[name] * amount for name, amount in parts.items()) * 1000)
