"""bind: passes a handler the services that it names.

A handler is a function `handle(request, now_ms, *, groups: Groups, replies: Replies)`. Its keyword-only parameters are
names of fields of `Services`. `bind` looks them up once, when the handler is loaded. A service that some brokers lack
is None in `Services`, and the annotation of the handler's parameter allows None: `telemetry: ClientTelemetry | None`.

The handler of a frequent API is a class, because a call with many keywords takes a microsecond. One object is made from
the services, which are keyword-only parameters of the constructor. Its method is `handle(request, now_ms)`.
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
    """Return a handler that takes only the request and the time."""
    given = {name: getattr(services, name) for name in service_names(handle)}
    if isinstance(handle, type):
        method: Handler = handle(**given).handle
        return method
    return partial(handle, **given) if given else handle
