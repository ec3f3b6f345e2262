"""The APIs whose handlers take flat tuples (`protocol/flat/`), and how their requests become such tuples.

A kernel reads a frame of a flexible version in one pass. Frames of other versions are decoded as messages and then
converted, so handlers get the same tuples for all versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tailrace.broker.handling.request_decoder import ELEMENTS_AT_ONCE
from tailrace.broker.requests.request_context import ConnectionContext, Request
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.flat import fetch, offset_commit, produce, read_kernels

# Each reader returns the fields of a request as a plain tuple, from which the class beside it is made.
_READERS: Final[Mapping[int, tuple[Callable[[Any, int], tuple[Any, ...] | None], type[tuple[Any, ...]]]]] = {
    ApiKey.PRODUCE: (read_kernels.read_flat_produce, produce.ProduceAsk),
    ApiKey.FETCH: (read_kernels.read_flat_fetch, fetch.FetchAsk),
    ApiKey.OFFSET_COMMIT: (read_kernels.read_flat_offset_commit, offset_commit.CommitAsk),
}
_new_tuple: Final = tuple.__new__  # takes half the time of NamedTuple's constructor
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
    read, kind = reader
    found = read(frame, ELEMENTS_AT_ONCE)
    if found is None:
        return None
    version, correlation_id, client_id, fields = found
    ask = _new_tuple(kind, fields)
    request: Request = _new_tuple(
        Request, (context, key, version, correlation_id, client_id, ask, now_ms, len(frame), None)
    )
    return request


def flattened(api_key: int, version: int, body: Any) -> Any:
    """Return the body that the handler of an API takes: flat tuples, or the message itself."""
    convert = _CONVERTERS.get(api_key)
    return body if convert is None else convert(body, version)
