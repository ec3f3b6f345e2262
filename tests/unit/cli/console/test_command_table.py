"""The commands that the console runs, and the parameters that it passes on."""

from __future__ import annotations

import pytest

from tailrace.cli.console.command_table import COMMANDS, Form, InvalidCommand, find_command
from tailrace.cli.parsing.parser import build_parser


def test_a_path_and_its_parameters_become_the_words_of_a_command() -> None:
    words = find_command("consume").words_for([("arg", "orders"), ("from", "-5"), ("more", "")])
    assert words == ["consume", "--json", "--from=-5", "--more", "--", "orders"]


@pytest.mark.parametrize("path", ["", "serve", "job/export", "topics", "topics/list/x", "log/repair", "../x"])
def test_a_command_that_is_not_in_the_table_is_refused(path: str) -> None:
    with pytest.raises(InvalidCommand, match="does not run"):
        find_command(path)


@pytest.mark.parametrize("name", ["bootstrap", "command-config", "X", "data", "file", "profile", "metrics", "group"])
@pytest.mark.parametrize("path", ["topics/list", "consume", "log/ls", "produce", "top live"])
def test_options_that_name_files_or_other_clusters_are_refused(path: str, name: str) -> None:
    command = COMMANDS[path.replace("/", " ")]
    with pytest.raises(InvalidCommand, match="does not pass on"):
        command.words_for([("arg", "x"), (name, "value")])


@pytest.mark.parametrize("value", ["x" * 5_000, "a\0b"])
def test_a_value_that_is_too_long_or_has_a_nul_is_refused(value: str) -> None:
    with pytest.raises(InvalidCommand, match="4096"):
        find_command("topics/describe").words_for([("arg", value)])


def test_a_value_that_looks_like_an_option_stays_a_value() -> None:
    words = find_command("topics/describe").words_for([("arg", "--bootstrap=evil:9092")])
    options = build_parser().parse_args(words)
    assert options.topic == ["--bootstrap=evil:9092"]
    assert options.bootstrap is None


def test_every_command_of_the_table_is_a_command_of_tailrace() -> None:
    for command in COMMANDS.values():
        arguments = [("arg", "orders-0" if "abort" in command.words else "orders")] * command.arguments.start
        needed = {
            "configs": [("topic", "orders")],
            "groups reset": [("to-earliest", "")],
            "topics alter": [("partitions", "3")],
            "topics trim": [("before", "5")],
            "transactions abort": [("start-offset", "7")],
            "log explain": [("offset", "7")],
        }
        name = " ".join(command.words)
        more = next((pairs for start, pairs in needed.items() if name.startswith(start)), [])
        if name in ("configs set", "configs unset"):
            arguments = [("arg", "retention.ms=1" if name.endswith(" set") else "retention.ms")]
        words = command.words_for([*arguments, *more])
        if command.source.name == "DATA":
            words += ["--", "/data"]
        options = build_parser().parse_args(words)
        assert options.json or command.form is Form.FILE, name
        if command.form is Form.STREAM:
            assert (
                name == "top"
                or getattr(options, "follow", False)
                or getattr(options, "watch", None)
                or options.progress
            )
