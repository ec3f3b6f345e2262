"""bind: a handler with the services that it names.

A handler is a function `handle(request, now_ms, *, groups: Groups, replies: Replies)`. Its keyword-only parameters are
names of fields of `Services`; `bind` looks them up once, when the handler is loaded. A service that some brokers do not
have is None there, and a handler that can do without says so in its annotation: `telemetry: ClientTelemetry | None`.

The handler of a frequent API is a class, because a call with many keywords takes a microsecond. It is made once, with
the services as keyword-only parameters, and has a method `handle(request, now_ms)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any, TypeAlias

from tailrace.broker.requests.request_context import Request

Handler: TypeAlias = Callable[[Request, int], Any]


def service_names(handle: Callable[..., Any]) -> list[str]:
    """Return the names of the services that a handler needs."""
    return [one.name for one in signature(handle).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]


def bind(handle: Callable[..., Any], services: object) -> Handler:
    """Return a handler that needs nothing but the request and the time."""
    given = {name: getattr(services, name) for name in service_names(handle)}
    if isinstance(handle, type):
        method: Handler = handle(**given).handle
        return method
    return partial(handle, **given) if given else handle
