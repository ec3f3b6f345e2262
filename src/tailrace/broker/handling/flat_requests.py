"""The APIs whose handlers take flat tuples (`protocol/flat/`), and how their requests become such tuples.

A frame of a flexible version is read by a kernel in one pass. Everything else is decoded as a message and converted, so
that a handler sees one form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tailrace.broker.handling.request_decoder import ELEMENTS_AT_ONCE
from tailrace.broker.requests.request_context import ConnectionContext, Request
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.flat import fetch, offset_commit, produce

_READERS: Final[Mapping[int, Callable[[Any, int], tuple[int, int, str | None, Any] | None]]] = {
    ApiKey.PRODUCE: produce.read_produce_ask,
    ApiKey.FETCH: fetch.read_fetch_ask,
    ApiKey.OFFSET_COMMIT: offset_commit.read_commit_ask,
}
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time
_CONVERTERS: Final[Mapping[int, Callable[[Any, int], Any]]] = {
    ApiKey.PRODUCE: produce.ask_of,
    ApiKey.FETCH: fetch.ask_of,
    ApiKey.OFFSET_COMMIT: offset_commit.ask_of,
}


def read_flat(frame: Any, key: int, context: ConnectionContext, now_ms: int) -> Request | None:
    """Return a request of an API with a flat body, or None if the frame has to be decoded as a message."""
    reader = _READERS.get(key)
    if reader is None or not context.is_authenticated:
        return None
    found = reader(frame, ELEMENTS_AT_ONCE)
    if found is None:
        return None
    version, correlation_id, client_id, ask = found
    request: Request = _new_tuple(
        Request, (context, key, version, correlation_id, client_id, ask, now_ms, len(frame), None)
    )
    return request


def flattened(api_key: int, version: int, body: Any) -> Any:
    """Return the body that the handler of an API takes: flat tuples, or the message itself."""
    convert = _CONVERTERS.get(api_key)
    return body if convert is None else convert(body, version)
