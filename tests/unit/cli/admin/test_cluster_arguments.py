"""Options of the commands that talk to a cluster: help with examples, and errors for wrong options."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli.parsing.parser import build_parser
from tests.support.command import tailrace

COMMANDS = [
    "topics list",
    "topics describe",
    "topics create",
    "topics delete",
    "topics alter",
    "configs describe",
    "configs set",
    "configs unset",
    "produce",
    "consume",
    "offsets",
    "cluster status",
]


@pytest.mark.parametrize("command", [*COMMANDS, "topics", "configs", "cluster", "cluster up"])
def test_help_teaches_with_examples(command: str) -> None:
    ran = tailrace(*command.split(), "--help")
    assert ran.status == 0
    assert ran.out.count(f"tailrace {command}") > 2
    assert all(len(line) <= 120 for line in ran.lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_cluster_command_has_bootstrap_and_json(command: str) -> None:
    out = tailrace(*command.split(), "--help").out
    assert "--bootstrap HOST:PORT" in out
    assert "127.0.0.1:9092" in out
    assert "--json" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics"],
        ["topics", "create"],
        ["topics", "create", "t", "--partitions", "0"],
        ["topics", "alter", "t"],
        ["topics", "list", "--timeout", "never"],
        ["topics", "list", "--timeout", "0"],
        ["configs", "describe"],
        ["configs", "describe", "--topic", "t", "--broker", "1"],
        ["configs", "describe", "--broker", "one"],
        ["configs", "set", "--topic", "t"],
        ["produce"],
        ["produce", "t", "--acks", "2"],
        ["produce", "t", "--compression", "rar"],
        ["produce", "t", "--partition", "-1"],
        ["consume"],
        ["consume", "t", "--from", "somewhere"],
        ["consume", "t", "--max", "0"],
        ["consume", "t", "--json", "--values"],
        ["offsets", "t", "--at", "soon"],
        ["cluster"],
        ["cluster", "up", "--brokers", "0"],
        ["cluster", "up", "--port", "70000"],
        ["cluster", "status", "--watch", "--wait", "3"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str]) -> None:
    ran = tailrace(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert "usage: tailrace" in ran.err or "--json" in arguments


def test_help_imports_nothing_of_the_client() -> None:
    code = (
        "import sys; from tailrace.cli.main import main; main(['consume', '--help']); "
        "print([name for name in sys.modules if name.startswith(('tailrace.client', 'tailrace.protocol', 'socket'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("page", ["reference/command-line.md", "how-to/run-a-cluster.md"])
def test_every_command_of_the_guide_can_be_parsed(page: str) -> None:
    text = Path(__file__).parents[4].joinpath("docs", page).read_text()
    lines = re.findall(r"^(?:\$ )?((?:[^`\n]*\| )?tailrace (?!serves)[^#>\n]*)", text, re.M)
    quoted = [*lines, *re.findall(r"`([^`\n]*tailrace [^`\n]+)`", text)]
    parts = [part for line in quoted for part in re.split(r"\s*\\?\|\s*", line) if part.startswith("tailrace ")]
    split = [shlex.split(part)[1:] for part in parts]
    # `tailrace COMMAND …` stands for any command.
    commands = [words for words in split if len(words) > 1 and words[0] not in ("log", "COMMAND")]
    assert len(commands) > 5
    parser = build_parser()
    for words in commands:
        assert parser.parse_args(words)
