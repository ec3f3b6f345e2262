"""Visitors: who is logged in, and which requests come from the console's own page.

A login is a user name and a password of the cluster. They stay in memory, under a random name that the browser keeps in
a cookie, until the visitor logs out or has not been seen for an hour.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tailrace.cli.console.console_settings import ConsoleSettings, is_loopback
from tailrace.cli.console.http_message import Request

COOKIE: Final = "tailrace_console"
OWN_HEADER: Final = (
    "x-tailrace-console"  # a page of another site cannot send this header without a preflight request, which is refused
)
IDLE_S_MAX: Final = 3_600.0
VISITORS_MAX: Final = 1_000


@dataclass(slots=True)
class Visitor:
    user: str
    password: str
    seen_s: float


class Visitors:
    def __init__(self, settings: ConsoleSettings, clock_s: Callable[[], float]) -> None:
        self._settings = settings
        self._clock_s = clock_s
        self._by_key: dict[str, Visitor] = {}

    def find(self, request: Request) -> Visitor | None:
        """Return the visitor who sent a request, if there is a login."""
        now_s = self._clock_s()
        for key in [key for key, one in self._by_key.items() if now_s - one.seen_s > IDLE_S_MAX]:
            del self._by_key[key]
        visitor = self._by_key.get(request.cookie(COOKIE) or "")
        if visitor is not None:
            visitor.seen_s = now_s
        return visitor

    def log_in(self, user: str, password: str) -> str:
        """Remember a visitor whose password the cluster has accepted, and return the value of Set-Cookie."""
        if len(self._by_key) >= VISITORS_MAX:
            del self._by_key[min(self._by_key, key=lambda key: self._by_key[key].seen_s)]
        key = secrets.token_urlsafe(32)
        self._by_key[key] = Visitor(user, password, self._clock_s())
        return self._cookie(key)

    def log_out(self, request: Request) -> str:
        """Forget a visitor, and return the value of Set-Cookie."""
        self._by_key.pop(request.cookie(COOKIE) or "", None)
        return self._cookie("") + "; Max-Age=0"

    def _cookie(self, key: str) -> str:
        return f"{COOKIE}={key}; Path=/; HttpOnly; SameSite=Strict" + "; Secure" * self._settings.has_tls


def foreign_reason(request: Request, settings: ConsoleSettings) -> str | None:
    """Return why a request is refused as one of another site, or None if it comes from the console's own page.

    The Host header is compared, because a name of another site can be made to lead to this address. Requests that
    change something need a header of their own, and the Origin of this page.
    """
    host = request.headers.get("host", "")
    name = _host_name(f"//{host}")
    if not (is_loopback(name) or name in (settings.host, *settings.host_names)):
        return f"the host name {name!r} is not one of the console's: start it with --host-name {name}"
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return f"a page of {origin} may not use the console"
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return "a page of another site may not use the console"
    if request.method == "POST" and OWN_HEADER not in request.headers:
        return f"a request that changes something needs the header {OWN_HEADER}"
    return None


def _host_name(address: str) -> str:
    """Return the host of an address, or "" if it is malformed."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
