"""`tailrace explain fetch`: let a running broker carry out a fetch, and show its steps as text or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any
from urllib.parse import urlencode

from tailrace.cli.errors import CommandError
from tailrace.cli.log.explain_text import read_text
from tailrace.cli.output import count_text, json_document, print_lines, size_text
from tailrace.cli.serving.http_get import get, page_errors
from tailrace.log.inspect.explain import (
    Bounds,
    Cost,
    IndexSearch,
    Probe,
    ReadExplanation,
    SegmentWalk,
    Slice,
    WalkedBatch,
)
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.watermarks import Isolation


def run(options: argparse.Namespace) -> int:
    parameters = {
        "topic": options.topic,
        "partition": options.partition,
        "offset": options.offset,
        "isolation": options.isolation,
        "max_bytes": options.max_bytes,
        "min_bytes": options.min_bytes,
        "max_wait_ms": options.max_wait_ms,
    }
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    # The broker responds when the fetch completes, so the HTTP timeout is extended by the fetch's max wait.
    answer = get(options.metrics, f"/explain/fetch?{query}", extra_timeout_s=(options.max_wait_ms or 0) / 1_000)
    try:
        walk = json.loads(answer.text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{options.metrics} does not serve /explain/fetch: HTTP status {answer.status}") from error
    with page_errors(options.metrics, "/explain/fetch"):
        if answer.status != 200:
            raise CommandError(f"{options.metrics}: {walk.get('error', answer.status)}")
        lines = [json_document(walk)] if options.json else fetch_text(walk)
        has_errors = any(one["error"] != "NONE" for one in [*walk["refused"], *walk["partitions"]])
    print_lines(*lines)
    return 1 if has_errors else 0


def fetch_text(walk: dict[str, Any]) -> list[str]:
    """Return the steps of a fetch as text, with the steps and a chart of each partition's read."""
    lines = [
        f"Fetch version {walk['version']} of a {walk['fetcher']}, {walk['isolation']}, "
        f"at least {size_text(walk['min_bytes'])} within {walk['max_wait_ms']} ms, "
        f"at most {size_text(walk['max_bytes'])}",
        "",
        _line("Session", _session(walk["session"])),
        _line("Authorization", _authorization(walk)),
    ]
    lines += [_line("Refused", f"{one['topic']}-{one['partition']}: {one['error']}") for one in walk["refused"]]
    lines.append(_line("Waiting", _waiting(walk)))
    lines.append(_line("Response", f"{size_text(walk['size'])} of records; reason: {walk['reason']}"))
    for one in walk["partitions"]:
        lines += ["", *_partition(one)]
    return lines


def _line(name: str, text: str) -> str:
    return f"    {name:<16}{text}"


def _session(session: dict[str, Any]) -> str:
    text = f"{session['kind']}, {count_text(session['partitions'], 'partition')}"
    if session["id"]:
        text += f", id {session['id']}, next epoch {session['epoch']}"
    if session["idle"]:
        text += f", {session['idle']} skipped because they are unchanged"
    return text if session["error"] is None else f"{text}: {session['error']}"


def _authorization(walk: dict[str, Any]) -> str:
    if walk["authorizer"] is None:
        return "off: every client may fetch every topic"
    return f"{walk['authorizer']} allowed {count_text(len(walk['partitions']), 'partition')}"


def _waiting(walk: dict[str, Any]) -> str:
    if walk["waited_ms"] is None:
        return "none"
    by = "its deadline" if walk["woken_by"] is None else f"a change of {walk['woken_by']}"
    return f"{walk['waited_ms']} ms, ended by {by}"


def _partition(one: dict[str, Any]) -> list[str]:
    budget = one["budget"]
    lines = [
        f"{one['topic']}-{one['partition']} from offset {one['fetch_offset']}",
        _line("Replica", f"{one['role']} in epoch {one['leader_epoch']}" if one["role"] else "not on this broker"),
        _line(
            "Budget",
            f"{size_text(budget['share'])}: {size_text(budget['left'])} left in the response, "
            f"partition_max_bytes {size_text(budget['partition_max_bytes'])}"
            + (", at least one batch" if budget["at_least_one"] else "")
            + f"; {size_text(budget['taken'])} used",
        ),
    ]
    if one["error"] != "NONE":
        lines.append(_line("Error", one["error"]))
    if one["diverging_epoch"] is not None:
        epoch, end = one["diverging_epoch"]
        lines.append(
            _line("Diverges", f"the reader's log differs from this one from offset {end} on, in epoch {epoch}")
        )
    if one["preferred_read_replica"] is not None:
        lines.append(_line("Redirected", f"the reader is to fetch from broker {one['preferred_read_replica']}"))
    if one["aborted"]:
        aborted = ", ".join(f"producer {producer} from {first}" for producer, first in one["aborted"])
        lines.append(_line("Aborted", aborted))
    if not one["is_in_response"]:
        lines.append(_line("Omitted", "not in the response: nothing has changed since the last one of the session"))
    if one.get("remote") is not None:
        lines += _remote(one["remote"])
    if one["read"] is not None:
        lines += ["", *read_text(read_of(one["read"]))]
    return lines


def _remote(walk: dict[str, Any]) -> list[str]:
    """Return the walk to an offset that is only in the remote store."""
    lines = [_line("Tier", f"remote: the local log starts at offset {walk['local_start']}")]
    if walk["segment_id"] is None:
        return [*lines, _line("Segment", f"the remote metadata has none in epoch {walk['leader_epoch']}")]
    lines.append(
        _line(
            "Segment",
            f"{walk['segment_id']}, offsets {walk['start_offset']} to {walk['end_offset']}, "
            f"{size_text(walk['size'])}, in epoch {walk['leader_epoch']}",
        )
    )
    position = walk["index_position"]
    found = "not cached, fetched from the store" if position is None else f"cached, the read begins at byte {position}"
    return [*lines, _line("Index", found)]


def read_of(plain: dict[str, Any]) -> ReadExplanation:
    """Build a ReadExplanation from its JSON."""
    bounds = {**plain["bounds"], "isolation": Isolation(plain["bounds"]["isolation"])}
    aborted = plain["aborted"]
    return ReadExplanation(
        partition=plain["partition"],
        offset=plain["offset"],
        max_bytes=plain["max_bytes"],
        bounds=Bounds(**bounds),
        walks=[_walk_of(one) for one in plain["walks"]],
        slice=None if plain["slice"] is None else Slice(**plain["slice"]),
        aborted=None if aborted is None else [AbortedTransaction(**one) for one in aborted],
        aborted_indexes=plain["aborted_indexes"],
        empty_because=plain["empty_because"],
        cost=None if plain["cost"] is None else Cost(**plain["cost"]),
    )


def _walk_of(plain: dict[str, Any]) -> SegmentWalk:
    search = {**plain["search"], "probes": [Probe(**one) for one in plain["search"]["probes"]]}
    return SegmentWalk(
        **{**plain, "search": IndexSearch(**search), "walked": [WalkedBatch(**one) for one in plain["walked"]]}
    )
