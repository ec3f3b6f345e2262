"""`tailrace explain fetch`: a running broker carries out a fetch and tells how, as text or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any
from urllib.parse import urlencode

from tailrace.cli.errors import CommandError
from tailrace.cli.log.explain_text import read_text
from tailrace.cli.output import count_text, json_document, say, size_text
from tailrace.cli.serving.http_get import get
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
    wish = {
        "topic": options.topic,
        "partition": options.partition,
        "offset": options.offset,
        "isolation": options.isolation,
        "max_bytes": options.max_bytes,
        "min_bytes": options.min_bytes,
        "max_wait_ms": options.max_wait_ms,
    }
    query = urlencode({name: value for name, value in wish.items() if value is not None})
    # A broker answers when the fetch is ready, so its waiting comes on top.
    answer = get(options.metrics, f"/explain/fetch?{query}", more_s=(options.max_wait_ms or 0) / 1_000)
    try:
        walk = json.loads(answer.text)
    except ValueError as error:
        raise CommandError(f"{options.metrics} explains nothing: {answer.status}") from error
    if answer.status != 200:
        raise CommandError(f"{options.metrics}: {walk.get('error', answer.status)}")
    if options.json:
        say(json_document(walk))
    else:
        say(*fetch_text(walk))
    return 1 if any(one["error"] != "NONE" for one in [*walk["refused"], *walk["partitions"]]) else 0


def fetch_text(walk: dict[str, Any]) -> list[str]:
    """The steps of a fetch; within them those of each partition's read, with a picture."""
    lines = [
        f"Fetch version {walk['version']} of a {walk['who']}, {walk['isolation']}, "
        f"at least {size_text(walk['min_bytes'])} within {walk['max_wait_ms']} ms, "
        f"at most {size_text(walk['max_bytes'])}",
        "",
        _line("Session", _session(walk["session"])),
        _line("Authorisation", _authorisation(walk)),
    ]
    lines += [_line("Refused", f"{one['topic']}-{one['partition']}: {one['error']}") for one in walk["refused"]]
    lines.append(_line("Waiting", _waiting(walk)))
    lines.append(_line("Answer", f"{size_text(walk['size'])} of records, since {walk['reason']}"))
    for one in walk["partitions"]:
        lines += ["", *_partition(one)]
    return lines


def _line(name: str, text: str) -> str:
    return f"    {name:<16}{text}"


def _session(session: dict[str, Any]) -> str:
    told = f"{session['kind']}, {count_text(session['partitions'], 'partition')}"
    if session["id"]:
        told += f", id {session['id']}, next epoch {session['epoch']}"
    if session["idle"]:
        told += f", {session['idle']} passed over since nothing has changed"
    return told if session["error"] is None else f"{told}: {session['error']}"


def _authorisation(walk: dict[str, Any]) -> str:
    if walk["authorizer"] is None:
        return "none: everyone may fetch everything"
    return f"{walk['authorizer']} let {count_text(len(walk['partitions']), 'partition')} pass"


def _waiting(walk: dict[str, Any]) -> str:
    if walk["waited_ms"] is None:
        return "not at all"
    by = "its deadline" if walk["woken_by"] is None else f"a change of {walk['woken_by']}"
    return f"{walk['waited_ms']} ms, ended by {by}"


def _partition(one: dict[str, Any]) -> list[str]:
    budget = one["budget"]
    lines = [
        f"{one['topic']}-{one['partition']} from offset {one['fetch_offset']}",
        _line("Replica", f"{one['role']} in epoch {one['leader_epoch']}" if one["role"] else "not here"),
        _line(
            "Budget",
            f"{size_text(budget['share'])}: {size_text(budget['left'])} are left of the answer, "
            f"the partition may have {size_text(budget['partition_max_bytes'])}"
            + (", and one batch in any case" if budget["at_least_one"] else "")
            + f"; {size_text(budget['taken'])} taken",
        ),
    ]
    if one["error"] != "NONE":
        lines.append(_line("Error", one["error"]))
    if one["diverging_epoch"] is not None:
        epoch, end = one["diverging_epoch"]
        lines.append(_line("Diverges", f"the reader's log and this one part at offset {end}, in epoch {epoch}"))
    if one["preferred_read_replica"] is not None:
        lines.append(_line("Elsewhere", f"the reader is sent to broker {one['preferred_read_replica']}"))
    if one["aborted"]:
        told = ", ".join(f"producer {producer} from {first}" for producer, first in one["aborted"])
        lines.append(_line("Aborted", told))
    if not one["is_told"]:
        lines.append(_line("Told", "not in the answer: it is no news"))
    if one["read"] is not None:
        lines += ["", *read_text(read_of(one["read"]))]
    return lines


def read_of(plain: dict[str, Any]) -> ReadExplanation:
    """A read as it was before it became JSON."""
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
