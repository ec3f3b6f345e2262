"""CommandParser: argparse with suggestions for mistyped words.

A wrong argument is reported by the parser of the verb that it was given to, with the usage of that verb. With --json
the error is JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from tailrace.cli.errors import USAGE_ERROR
from tailrace.cli.output import report_error, use_json_errors

_JSON_OPTIONS: Final = ("--json", "-J")
_SIMILARITY_MIN: Final = 0.6
_SUGGESTIONS_MAX: Final = 3


class CommandParser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        """Create a parser that accepts no abbreviated options: `--password x` must not be taken for --password-file."""
        super().__init__(**{"allow_abbrev": False, **settings})
        self._verbs: dict[str, CommandParser] = {}

    def add_verb(self, name: str) -> CommandParser:
        """Add a verb to a command that also has positional arguments, which argparse does not support."""
        self._verbs[name] = CommandParser(prog=f"{self.prog} {name}")
        return self._verbs[name]

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments. Unlike argparse, the parser of a verb reports unknown arguments itself."""
        self._words = list(sys.argv[1:] if args is None else args)
        if self._words and self._words[0] in self._verbs:
            return self._verbs[self._words[0]].parse_known_args(self._words[1:], namespace)
        found, unknown = super().parse_known_args(self._words, namespace)
        if unknown:
            self.error(self._unknown_text(unknown))
        return found, unknown

    def _unknown_text(self, unknown: Sequence[str]) -> str:
        options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        if not options:
            return f"unexpected argument {unknown[0]!r}"
        return f"unknown option {options[0]}{did_you_mean(options[0], self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error with a suggestion for a value that is not a choice."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        hint = did_you_mean(str(value), choices) or f" (choose from {', '.join(choices)})"
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown {str(action.metavar).lower()} {value!r}{hint}")
        raise argparse.ArgumentError(action, f"{value!r} is not a valid choice{hint}")

    def error(self, message: str) -> NoReturn:
        """Report a wrong command line, and exit.

        If a required option is missing, an unknown one is reported first: it is probably the required one, mistyped.
        """
        if "required" in message:
            mistyped = [word for word in self._words if word.startswith("--") and not self._is_known(word)]
            if mistyped:
                message = f"{self._unknown_text(mistyped)}; {message}"
        is_json = any(word in _JSON_OPTIONS for word in self._words)
        use_json_errors(is_json)
        if not is_json and not self._words and self._subparsers is not None:
            self.print_help(sys.stderr)  # `tailrace` or `tailrace topics` alone: a new user looks for the commands
            raise SystemExit(USAGE_ERROR)
        if not is_json:
            self.print_usage(sys.stderr)
        report_error(message, USAGE_ERROR, command=self.prog)
        raise SystemExit(USAGE_ERROR)

    def _is_known(self, word: str) -> bool:
        return word.partition("=")[0] in self._option_string_actions


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion in parentheses, or an empty text. Known words that start with `word` come before similar
    ones."""
    words = list(known)
    longer = [one for one in words if one.startswith(f"{word}-")] or [one for one in words if one.startswith(word)]
    close = (
        longer[:_SUGGESTIONS_MAX]
        if len(word.strip("-")) > 1 and longer
        else get_close_matches(word, words, 1, _SIMILARITY_MIN)
    )
    return f" (did you mean {' or '.join(close)}?)" if close else ""
