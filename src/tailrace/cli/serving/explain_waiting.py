"""`tailrace explain waiting`: the requests that wait in a running broker, their keys, and the fetch sessions."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.cli.serving.http_get import get, page_errors

_SHOWN_ABOVE = ("kind", "clientId", "user", "address", "waitedMs", "deadlineInMs", "keyCount", "keys")


def run(options: argparse.Namespace) -> int:
    answer = get(options.metrics, "/waiting")
    if answer.status != 200:
        raise CommandError(f"{options.metrics} does not serve /waiting: HTTP status {answer.status}")
    with page_errors(options.metrics, "/waiting"):
        state = json.loads(answer.text)
        lines = [json_document(state)] if options.json else waiting_text(state)
    print_lines(*lines)
    return 0


def waiting_text(state: dict[str, Any]) -> list[str]:
    """Return the waiting requests and the fetch sessions as two tables."""
    lines = [
        f"{count_text(state['waiting'], 'request')} waiting, {count_text(state['watchedKeys'], 'watched key')}; "
        f"so far {state['completed']:,} completed and {state['expired']:,} at their deadline"
    ]
    if state["operations"]:
        rows = [
            (
                one["kind"],
                _client_text(one),
                _ms_text(one.get("waitedMs")),
                _ms_text(one["deadlineInMs"]),
                _keys_text(one),
                _facts_text(one),
            )
            for one in state["operations"]
        ]
        lines += ["", *table(["<REQUEST", "<CLIENT", "WAITED", "DEADLINE IN", "<WOKEN BY", "<FACTS"], rows)]
    lines += ["", count_text(state["sessionCount"], "fetch session")]
    if state["sessions"]:
        sessions = [
            (
                one["id"],
                "follower" if one["isFollower"] else "consumer",
                one["partitions"],
                one["epoch"],
                f"{one['ageMs'] / 1000:,.0f} s",
                f"{one['unusedMs']:,} ms",
            )
            for one in state["sessions"]
        ]
        lines += table(["SESSION", "<OF A", "PARTITIONS", "EPOCH", "AGE", "LAST USED BEFORE"], sessions)
    return lines


def _client_text(operation: dict[str, Any]) -> str | None:
    """Return the client id, the user and the address of a waiting client; brokers of older versions name none."""
    words = [operation.get(name) for name in ("clientId", "user", "address")]
    return " ".join(word for word in words if word) or None


def _ms_text(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else f"{milliseconds:,} ms"


def _keys_text(operation: dict[str, Any]) -> str:
    more = operation["keyCount"] - len(operation["keys"])
    return ", ".join(operation["keys"]) + (f" and {more:,} more" if more > 0 else "")


def _facts_text(operation: dict[str, Any]) -> str:
    facts = {name: value for name, value in operation.items() if name not in _SHOWN_ABOVE and value is not None}
    return ", ".join(f"{name} {value}" for name, value in facts.items())
