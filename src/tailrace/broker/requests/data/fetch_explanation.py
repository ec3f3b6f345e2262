"""start_explained_fetch: a normal fetch whose result is an explanation of each step instead of records.

The fetch has no session, so it does not change the session of any client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.fetch.explain import as_plain, explain_fetch
from tailrace.fetch.fetch import Fetch
from tailrace.fetch.fetches import Fetches
from tailrace.fetch.session import FINAL_EPOCH
from tailrace.protocol.codegen.field_versions import FETCH_TOPIC_IDS
from tailrace.protocol.flat.fetch import ask_of
from tailrace.protocol.messages import FetchRequest

VERSION: Final = FETCH_TOPIC_IDS - 1  # the last version with topic names
WAIT_MS_MAX: Final = 60_000
_NUMBERS: Final = {
    "partition": (0, 2**31 - 1),
    "offset": (0, 2**63 - 1),
    "max_bytes": (0, 2**31 - 1),
    "partition_max_bytes": (0, 2**31 - 1),
    "min_bytes": (0, 2**31 - 1),
    "max_wait_ms": (0, WAIT_MS_MAX),
}
_DEFAULTS: Final = {
    "partition": "0",
    "max_bytes": "52428800",
    "partition_max_bytes": "1048576",
    "min_bytes": "1",
    "max_wait_ms": "0",
    "isolation": "read_uncommitted",
}


class InvalidQuery(ValueError):
    """The query does not describe a fetch. The message explains why."""


def start_explained_fetch(
    fetches: Fetches, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]
) -> None:
    """Start a fetch. `query` has topic, partition, offset and the settings of a consumer. `answer` is called once."""
    unknown = set(query) - {"topic", *_NUMBERS, *_DEFAULTS}
    if unknown:
        raise InvalidQuery(f"unknown parameters: {', '.join(sorted(unknown))}")
    asked = {**_DEFAULTS, **query}
    if "topic" not in asked or "offset" not in asked:
        raise InvalidQuery("a fetch needs a topic and an offset")
    if asked["isolation"] not in ("read_uncommitted", "read_committed"):
        raise InvalidQuery("isolation must be read_uncommitted or read_committed")
    number = {name: _number(name, asked[name], *limits) for name, limits in _NUMBERS.items()}
    partition = FetchRequest.FetchPartition(
        partition=number["partition"],
        fetch_offset=number["offset"],
        partition_max_bytes=number["partition_max_bytes"],
    )
    request = FetchRequest(
        max_wait_ms=number["max_wait_ms"],
        min_bytes=number["min_bytes"],
        max_bytes=number["max_bytes"],
        isolation_level=int(asked["isolation"] == "read_committed"),
        session_epoch=FINAL_EPOCH,
        topics=[FetchRequest.FetchTopic(topic=asked["topic"], partitions=[partition])],
    )

    def ready(fetch: Fetch, now_ms: int) -> None:
        answer(as_plain(explain_fetch(fetch)))

    fetches.start(ask_of(request, VERSION), VERSION, now_ms, ready, client=ConnectionContext(0))


def _number(name: str, text: str, low: int, high: int) -> int:
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise InvalidQuery(f"{name} is {text[:40]!r}; it must be a number from {low} to {high}")
    return int(text)
