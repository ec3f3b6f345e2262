"""Options of `tailrace groups`."""

from __future__ import annotations

import argparse
import re

from tailrace.cli.parsing.options import Parsers, add_cluster, add_json, described, natural, seconds, timestamp

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?", re.I
)


def add_groups(commands: Parsers) -> None:
    groups = described(
        commands.add_parser("groups", help="list and describe groups, show their lag, reset and delete their offsets"),
        "Show the groups of a cluster (Tailrace or Apache Kafka), their members and lag, and change their offsets.",
        """
        examples:
          tailrace groups list
          tailrace groups describe billing
          tailrace groups lag --max-lag 10000                       exit status 1 if a partition lags by more
          tailrace groups reset billing --topic orders --to-earliest --yes
          tailrace groups delete billing
        """,
    )
    verbs = groups.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_list(verbs)
    _add_describe(verbs)
    _add_lag(verbs)
    _add_reset(verbs)
    _add_delete(verbs)
    _add_delete_offsets(verbs)


def _add_list(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("list", help="list groups: names, types, states"),
        "List the groups of a cluster with their type, state and protocol.",
        """
        examples:
          tailrace groups list
          tailrace groups list --state empty --json | jq -r '.groups[].group'
        """,
    )
    parser.add_argument(
        "--state", metavar="STATE", action="append", help="list only groups in this state (may be repeated)"
    )
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_list")


def _add_describe(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("describe", help="show members, partitions, committed offsets and lag"),
        """
        Show a group's members, and for each partition the committed offset, the end of the log and the member that
        reads it. LAG is the number of offsets between the committed offset and the end.
        """,
        """
        examples:
          tailrace groups describe billing
          tailrace groups describe billing --json | jq '.groups[0].partitions[] | select(.lag > 0)'
        """,
    )
    parser.add_argument("group", metavar="GROUP", nargs="+", help="name of a group")
    _add_times(parser)
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_describe")


def _add_lag(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("lag", help="show the lag of groups by topic"),
        """
        Show the lag of groups by topic: the sum over its partitions, and the largest lag of one partition. With --max,
        the exit status is 1 if a partition lags by more offsets than that.
        """,
        """
        examples:
          tailrace groups lag
          tailrace groups lag billing shipping --json
          tailrace groups lag --times
          tailrace groups lag --max-lag 10000 || ./send-alert.sh
        """,
    )
    parser.add_argument("group", metavar="GROUP", nargs="*", help="name of a group (default: all groups)")
    parser.add_argument(
        "--max-lag",
        "--max",
        dest="max",
        metavar="N",
        type=natural,
        help="largest acceptable lag of a partition, in offsets",
    )
    _add_times(parser)
    parser.add_argument(
        "--watch", metavar="SECONDS", type=seconds, help="with --json, print a line at this interval until Ctrl-C"
    )
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.group_lag:run_lag")


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--times", action="store_true", help="also show the lag in seconds: the age of the oldest unread record"
    )


def _add_reset(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("reset", help="change the committed offsets of a group"),
        """
        Change the committed offsets of a group, so that its members resume reading elsewhere. Stop the members first.
        Without --yes the plan is shown and nothing is changed. An offset outside a log is replaced by the nearer
        end of the log.

        A share group restarts at the new offset: all records after it can be acquired again.

        TIME is milliseconds since 1970, or ISO 8601 (UTC if it has no time zone). DURATION is ISO 8601: PnDTnHnMnS.
        """,
        """
        examples:
          tailrace groups reset billing --to-earliest                           plan only, for all committed offsets
          tailrace groups reset billing --topic orders --to-datetime 2026-01-31T12:00:00Z --yes
          tailrace groups reset billing --topic orders:0,3 --shift-by -100 --yes
          tailrace groups reset billing --topic orders --by-duration PT2H --yes
        """,
    )
    parser.add_argument("group", metavar="GROUP", help="name of the group; it need not exist yet")
    parser.add_argument("--share", action="store_true", help="create a share group, if the group does not exist")
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:N,N]",
        type=topic_partitions,
        action="append",
        default=[],
        help="topic to reset, or some of its partitions (may be repeated; default: all committed offsets)",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="to the first record")
    where.add_argument("--to-latest", action="store_true", help="to the end of the log")
    where.add_argument(
        "--to-current", action="store_true", help="to the committed offset, or the end of the log if there is none"
    )
    where.add_argument("--to-offset", metavar="N", type=natural, help="to this offset")
    where.add_argument(
        "--to-datetime", metavar="TIME", type=timestamp, help="to the first record at or after this time"
    )
    where.add_argument(
        "--by-duration", metavar="DURATION", type=duration_ms, help="to the first record that is not older than this"
    )
    where.add_argument("--shift-by", metavar="N", type=integer, help="forward by N offsets, or back if N is negative")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--yes", "--execute", dest="execute", action="store_true", help="change the offsets")
    mode.add_argument("--dry-run", action="store_true", help="only show the plan (the default)")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_reset")


def _add_delete(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("delete", help="delete groups and their committed offsets"),
        "Delete groups that have no members, with their committed offsets.",
        """
        examples:
          tailrace groups delete billing
          tailrace groups delete billing shipping --if-exists
        """,
    )
    parser.add_argument("group", metavar="GROUP", nargs="+", help="name of a group")
    parser.add_argument("--if-exists", action="store_true", help="ignore groups that do not exist")
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_delete")


def _add_delete_offsets(verbs: Parsers) -> None:
    parser = described(
        verbs.add_parser("delete-offsets", help="delete a group's committed offsets of topics"),
        """
        Delete the committed offsets of a group for topics that none of its members reads. A share group must have no
        members at all.
        """,
        """
        examples:
          tailrace groups delete-offsets billing --topic orders
          tailrace groups delete-offsets billing --topic orders:0,3
        """,
    )
    parser.add_argument("group", metavar="GROUP", help="name of the group")
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:N,N]",
        type=topic_partitions,
        action="append",
        required=True,
        help="topic, or some of its partitions (may be repeated); a share group takes whole topics only",
    )
    _add_common(parser)
    parser.set_defaults(run="tailrace.cli.admin.groups:run_delete_offsets")


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_json(parser, "one JSON document")


def topic_partitions(text: str) -> tuple[str, frozenset[int] | None]:
    """Parse TOPIC, or TOPIC:N,N for some of its partitions."""
    name, colon, numbers = text.partition(":")
    if not name or (colon and not all(one.isascii() and one.isdigit() for one in numbers.split(","))):
        raise argparse.ArgumentTypeError(f"{text!r} is neither TOPIC nor TOPIC:N,N")
    return name, frozenset(map(int, numbers.split(","))) if colon else None


def integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration, PnDTnHnMnS, as Java writes it."""
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {name: float(part) for name, part in found.groupdict().items() if part}
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write it like P7D, PT2H30M or PT15S")
    units = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    return int(sum(units[name] * amount for name, amount in parts.items()) * 1000)
