"""ConnectionContext, Request and Reply: what passes between the server and the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.log.segments.position import FileSlice

# (response or None, now_ms, throttle_ms, True if the connection has to be closed)
Respond: TypeAlias = Callable[[Any, int, int, bool], None]
Part: TypeAlias = bytes | bytearray | memoryview | FileSlice
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


class Session:
    """What is kept of a connection between its requests, by whoever has to know."""

    __slots__ = ()


@dataclass(slots=True)
class ConnectionContext:
    """Who is at the other end of a connection."""

    connection_id: int
    listener: str = "PLAINTEXT"
    client_host: str = "127.0.0.1"
    client_port: int = 0
    principal: str = "User:ANONYMOUS"
    software_name: str = "unknown"
    software_version: str = "unknown"
    is_authenticated: bool = True  # it has said who it is, or need not
    has_token: bool = False  # it logged in with a delegation token
    session: Session | None = None  # of saying so

    def note_software(self, name: str, version: str) -> None:
        """Note the client library, as ApiVersions names it."""
        self.software_name, self.software_version = name, version

    def begin_session(self, session: Session) -> None:
        """Keep the state of the authentication until the connection ends."""
        self.session = session

    def authenticate(self, principal: str, *, has_token: bool) -> None:
        """Note the principal that the client has proved to be."""
        self.principal, self.has_token = principal, has_token
        self.is_authenticated = True


class Request(NamedTuple):
    """One request, decoded."""

    context: ConnectionContext
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    received_ms: int
    size: int = 0  # in bytes, with its header
    respond: Respond | None = None  # takes the response to a piece of a request; None: it is sent

    def without_body(self) -> Request:
        """What an answer needs of a request. The body may have views of the memory it was received in."""
        return _new_tuple(Request, (*self[:5], None, *self[6:]))


class Reply(NamedTuple):
    """What goes back on a connection: header and body without the size in front, or nothing (acks=0)."""

    connection_id: int
    parts: list[Part] | None
    throttle_ms: int = 0
    close: bool = False
