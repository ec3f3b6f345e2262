"""Errors of a command line: the usage of the right verb, a suggestion, and JSON with --json."""

from __future__ import annotations

import json

import pytest

from tests.support.command import tailrace


@pytest.mark.parametrize(
    ("command", "usage", "words"),
    [
        ("topcs list", "tailrace [-h]", "unknown command 'topcs' (did you mean topics?)"),
        ("topics lst", "tailrace topics [-h]", "unknown verb 'lst' (did you mean list?)"),
        ("topics list --jsn", "tailrace topics list", "unknown option --jsn (did you mean --json?)"),
        ("topics list --qqq=1", "tailrace topics list", "unknown option --qqq\n"),
        ("topics list orders", "tailrace topics list", "unexpected argument 'orders'"),
        ("topics alter o --partitons 3", "tailrace topics alter", "--partitons (did you mean --partitions?)"),
        (
            "topics create o --repl 3",
            "tailrace topics create",
            "unknown option --repl (did you mean --replication-factor?)",
        ),
        (
            "groups reset g --to earliest",
            "tailrace groups reset",
            "reset: unknown option --to (did you mean --to-earliest or --to-latest or --to-current?); one of",
        ),
        ("--verison", "tailrace [-h]", "tailrace: unknown option --verison (did you mean --version?); the following"),
        ("consume o --isolation read_comitted", "tailrace consume", "(did you mean read_committed?)"),
        ("produce o --acks most", "tailrace produce", "'most' is not a valid choice (choose from all, 1, 0)"),
    ],
)
def test_a_mistyped_word_is_reported_with_the_usage_of_its_verb(command: str, usage: str, words: str) -> None:
    ran = tailrace(*command.split())
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"usage: {usage}")
    assert words in ran.err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("topics list --json --foo", "unknown option --foo"),
        ("topics list --json --profile a --command-config /nowhere -X a=1", None),
        ("consume orders --json --max 0", None),
        ("log ls /nowhere --json", None),
    ],
)
def test_with_json_an_error_is_json(command: str, message: str | None) -> None:
    ran = tailrace(*command.split())
    assert (ran.status, ran.out) == (2, "")
    error = json.loads(ran.err)["error"]
    assert error["status"] == 2
    assert error["message"]
    assert message is None or error["message"] == message


def test_an_error_after_one_of_a_json_command_is_text_again() -> None:
    assert json.loads(tailrace("log", "ls", "/nowhere", "--json").err)
    assert tailrace("log", "ls", "/nowhere").err.startswith("tailrace: ")
