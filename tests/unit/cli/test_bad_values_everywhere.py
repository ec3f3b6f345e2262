"""Every command refuses a wrong value of every option that it takes: one sentence, status 2, and nothing has changed.

The commands and their options come from the parser, so a new command or option is tested without a change here. Each
typed option is tried with nonsense. The options of all client commands are tried with the
wrong settings in `CLIENT_OPTIONS`.
"""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tailrace.cli.parsing.parser import build_parser
from tests.support.command import tailrace

CLIENT_OPTIONS = [
    ("-X", "novalue", "'novalue' is not a setting"),
    ("-X", "", "'' is not a setting"),
    ("-X", "=value", "-X '' is not a setting"),
    ("-X", "no.such.key=1", "unknown setting no.such.key"),
    ("-X", "security.protocol=NOPE", "security.protocol is 'NOPE'"),
    ("--profile", "missing", "there is no file"),
    ("--command-config", "/nowhere", "/nowhere: No such file"),
    ("--command-config", "/", "/: Is a directory"),
    ("--command-config", "", "--command-config is empty"),
    ("--bootstrap-server", "", "bootstrap address is empty"),
    ("--bootstrap-server", "host:99999", "'host:99999' has an invalid port"),
    ("--bootstrap-server", "two words", "'two words' is not a bootstrap address"),
    *(("--timeout", text, f"'{text}' is not a number of seconds") for text in ("0", "-1", "x", "nan", "inf", "")),
]
# What a command needs beside the names of its positional arguments.
NEEDED = {
    "topics alter": "--partitions 2",
    "topics trim": "--before 0",
    "configs describe": "--topic t",
    "configs set": "--topic t",
    "configs unset": "--topic t",
    "groups reset": "--to-earliest",
    "groups delete-offsets": "--topic t",
    "transactions abort": "--start-offset 0",
    "acls add": "--principal User:a --operation Read --topic t",
    "acls remove": "--principal User:a",
    "users set": "--password-file {password}",
    "quotas set": "--user a",
    "quotas remove": "--user a",
    "reassign plan": "--topic t --brokers 1",
    "elect unclean": "--topic t",
    "produce": "--topic t --file {password}",
    "consume": "--topic t",
}
PLACES = {"setting": "producer_byte_rate=1", "plan": "{plan}", "partition": "t-0", "key": "producer_byte_rate"}
PLAN = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}'


class Connected(BaseException):
    """A command tried to connect to a cluster."""


def leaves(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield path, parser
    for group in groups:
        for name, child in group.choices.items():
            yield from leaves(child, f"{path} {name}".strip())


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


COMMANDS = dict(leaves(build_parser()))
CLIENT_COMMANDS = [name for name, parser in COMMANDS.items() if "--bootstrap-server" in options_of(parser)]
SERVERS = ("console",)  # they connect when somebody asks
NONSENSE = ("x", "", "-7", "1e400", "٣", "%q")


def typed_options() -> Iterator[ParameterSet]:
    for name, parser in COMMANDS.items():
        for action in parser._actions:
            if action.option_strings and (action.type is not None or action.choices is not None):
                yield pytest.param(name, action.option_strings[-1], id=f"{name} {action.option_strings[-1]}")


def refused_by_type(command: str, option: str) -> list[str]:
    """Return the nonsense that the option's own type or choices refuse."""
    action = next(action for action in COMMANDS[command]._actions if option in action.option_strings)
    refused = []
    for text in NONSENSE:
        if action.choices is not None:
            refused.append(text)
            continue
        assert callable(action.type)
        try:
            action.type(text)
        except argparse.ArgumentTypeError:
            refused.append(text)
    return refused


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory of the command, which is empty. No command can connect to anything."""

    def connect(*arguments: object, **options: object) -> None:
        raise Connected

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "plan").write_text(PLAN)
    directory = tmp_path / "directory"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def complete(command: str, tmp_path: Path) -> list[str]:
    """Return a command line to which no argument is missing."""
    line = command.split()
    for action in COMMANDS[command]._actions:
        if not action.option_strings and action.nargs not in ("?", "*"):
            line.append(PLACES.get(action.dest, "t"))
    line += NEEDED.get(command, "").split()
    return [part.format(password=tmp_path / "password", plan=tmp_path / "plan") for part in line]


def assert_refused(line: list[str], words: str, directory: Path) -> None:
    ran = tailrace(*line)
    assert (ran.status, ran.out) == (2, ""), (line, ran.err)
    assert "Traceback" not in ran.err
    assert words in ran.err.splitlines()[-1], (line, ran.err)
    assert ran.err.count("\n") == 1 or ran.err.startswith("usage: tailrace"), (line, ran.err)
    assert os.listdir(directory) == []


@pytest.mark.parametrize("command", CLIENT_COMMANDS)
def test_a_wrong_option_of_client_commands_is_refused(command: str, directory: Path, tmp_path: Path) -> None:
    line = complete(command, tmp_path)
    if command not in SERVERS:
        with pytest.raises(Connected):
            tailrace(*line)
    for option, value, words in CLIENT_OPTIONS:
        given = [option, value] if option == "-X" else [f"{option}={value}"]
        assert_refused([*line, *given], words, directory)


@pytest.mark.parametrize(("command", "option"), list(typed_options()))
def test_nonsense_for_a_typed_option_is_refused_and_named(command: str, option: str, directory: Path) -> None:
    nonsense = refused_by_type(command, option)
    assert nonsense, "the option takes anything"
    for text in nonsense:
        ran = tailrace(*command.split(), f"{option}={text}")
        assert (ran.status, ran.out) == (2, "")
        last = ran.err.splitlines()[-1]
        assert last.startswith(f"tailrace {command}: argument ")
        assert option in last
        assert text in last.partition("argument ")[2]
        assert "invalid int value" not in last
        assert "invalid float value" not in last
        assert os.listdir(directory) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --data d -o novalue", "-o novalue is not a setting"),
        ("serve --data d -o num.partitions=zero", "num.partitions"),
        ("serve --data d --config /nowhere", "/nowhere: No such file"),
        ("serve --data d --port 0 --add-scram x", "a password in an argument is visible"),
        ("serve --data d --port 0 --add-scram @/nowhere", "/nowhere: No such file"),
        ("serve --data=", "log.dirs"),
        ("serve --data /etc/passwd --port 0", "/etc/passwd"),
        ("cluster up --data d --kafka-home /nowhere", "/nowhere is not an installation of Apache Kafka"),
        ("tour /etc/passwd", "/etc/passwd is not a directory"),
        ("log ls ftp://host/data", "ftp:// is not supported"),
        ("log ls /nowhere", "/nowhere: No such file"),
    ],
)
def test_a_wrong_place_or_setting_is_refused(line: str, words: str, directory: Path) -> None:
    assert_refused(line.split(), words, directory)
