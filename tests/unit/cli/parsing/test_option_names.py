"""An option has one meaning in all commands, and older names of options are still accepted."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tailrace.cli.parsing.parser import build_parser

# Options that take different values in different commands, because Kafka's words or the commands differ.
SEVERAL = {
    "--brokers": "a number where brokers are counted, ids in `reassign plan`",
    "--config": "a server.properties in `serve` and `migrate`, else a topic config",
    "--format": "of records in `consume`, of files in jobs",
    "--header": "a filter may be a name alone",
    "--host": "to listen on in `serve`, of a client in `acls`",
    "--state": "a directory for the progress of a job, else the state of a group or transaction",
    "--to": "a directory in `migrate`, a kind of table in `job export`",
    "--topic": "some commands take TOPIC:PARTITIONS or TOPIC:OTHER",
    "--user": "ACLs have principals, quotas have names",
}
OLDER = [
    (
        ["log", "cat", "x", "--from-time", "1", "--to-time", "2"],
        ["log", "cat", "x", "--from-timestamp", "1", "--to-timestamp", "2"],
    ),
    (["log", "explain", "x", "--at", "1"], ["log", "explain", "x", "--timestamp", "1"]),
    (["groups", "lag", "--max-lag", "5"], ["groups", "lag", "--max", "5"]),
    (["groups", "reset", "g", "--to-latest", "--yes"], ["groups", "reset", "g", "--to-latest", "--execute"]),
    (["job", "compact", "x", "--config", "a=b"], ["job", "compact", "x", "-o", "a=b"]),
]


def options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from options_of(verb)
        elif action.option_strings:
            yield action


def test_an_option_takes_the_same_kind_of_value_in_all_commands() -> None:
    kinds: dict[str, set[str | None]] = defaultdict(set)
    for action in options_of(build_parser()):
        kind = "flag" if action.nargs == 0 else "choice" if action.choices else str(action.metavar)
        for name in action.option_strings:
            if name.startswith("--"):
                kinds[name].add(kind)
    assert {name for name, found in kinds.items() if len(found) > 1} == set(SEVERAL)


@pytest.mark.parametrize(("now", "before"), OLDER, ids=lambda words: " ".join(words))
def test_an_older_name_of_an_option_is_still_accepted(now: list[str], before: list[str]) -> None:
    assert build_parser().parse_args(now) == build_parser().parse_args(before)
