"""Handlers get the services that their signatures name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from tailrace.broker.handling.handler_binding import bind, service_names
from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE, ApiRow
from tailrace.broker.services import Services

ROWS = [*API_TABLE.values(), *TELEMETRY_TABLE.values()]


def service_types() -> dict[str, Any]:
    names = {**vars(sys.modules[Services.__module__])}
    names.update(vars(import_module("tailrace.broker.metrics.client_telemetry")))
    return get_type_hints(Services, names)


def without_none(kind: Any) -> Any:
    """Return a type without `| None`. A handler that only some brokers serve may require a service of those brokers."""
    if get_origin(kind) in (Union, UnionType):
        (left,) = [one for one in get_args(kind) if one is not NoneType]
        return left
    return kind


def handler_of(row: ApiRow) -> Callable[..., Any]:
    handle: Callable[..., Any] = import_module(row.module).handle
    return handle


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key.name)
def test_a_handler_names_services_with_their_types(row: ApiRow) -> None:
    handle, services = handler_of(row), service_types()
    hints = get_type_hints(handle)
    for name in service_names(handle):
        assert name in services, f"{row.module}: there is no service {name}"
        assert hints[name] in (services[name], without_none(services[name])), f"{row.module}: {name}: {hints[name]}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key.name)
def test_a_handler_takes_the_request_and_the_time(row: ApiRow) -> None:
    kinds = inspect.Parameter
    handle = handler_of(row)
    method = handle.handle if isinstance(handle, type) else handle  # type: ignore[attr-defined]
    parameters = inspect.signature(method).parameters.values()
    positional = [one.name for one in parameters if one.kind is not kinds.KEYWORD_ONLY and one.name != "self"]
    assert positional == ["request", "now_ms"]


def test_bind_gives_a_handler_what_it_names() -> None:
    class Given:
        groups, shares = "the groups", "the shares"

    def handle(request: object, now_ms: int, *, groups: str) -> tuple[object, int, str]:
        return request, now_ms, groups

    request: Any = object()
    assert bind(handle, Given())(request, 5) == (request, 5, "the groups")


def test_bind_makes_a_handler_that_is_a_class_once() -> None:
    class Given:
        groups, shares = "the groups", "the shares"

    class Handler:
        def __init__(self, *, shares: str) -> None:
            self.shares = shares

        def handle(self, request: object, now_ms: int) -> tuple[object, int, str]:
            return request, now_ms, self.shares

    request: Any = object()
    assert bind(Handler, Given())(request, 5) == (request, 5, "the shares")
