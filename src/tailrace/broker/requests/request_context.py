"""ConnectionContext, Request and Reply: the values that pass between the server and the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.log.segments.position import FileSlice

# (response or None, now_ms, throttle_ms, True if the connection has to be closed)
Respond: TypeAlias = Callable[[Any, int, int, bool], None]
Part: TypeAlias = bytes | bytearray | memoryview | FileSlice
_new_tuple: Final = tuple.__new__  # takes half the time of NamedTuple's constructor


class Session:
    """The state of a connection's authentication. `security/guard.py` defines it."""

    __slots__ = ()


@dataclass(slots=True)
class ConnectionContext:
    """The client of a connection."""

    connection_id: int
    listener: str = "PLAINTEXT"
    client_host: str = "127.0.0.1"
    client_port: int = 0
    principal: str = "User:ANONYMOUS"
    software_name: str = "unknown"
    software_version: str = "unknown"
    is_authenticated: bool = True  # True after authentication, or if the listener requires none
    has_token: bool = False  # True if the client logged in with a delegation token
    session: Session | None = None  # the state of the authentication

    def note_software(self, name: str, version: str) -> None:
        """Note the name and version of the client library from ApiVersions."""
        self.software_name, self.software_version = name, version

    def begin_session(self, session: Session) -> None:
        """Keep the state of the authentication until the connection ends."""
        self.session = session

    def note_principal(self, principal: str) -> None:
        """Note the principal of the client's certificate. Its listener may require a login as well."""
        self.principal = principal

    def authenticate(self, principal: str, *, has_token: bool) -> None:
        """Note the authenticated principal."""
        self.principal, self.has_token = principal, has_token
        self.is_authenticated = True


class Request(NamedTuple):
    """One decoded request."""

    context: ConnectionContext
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    received_ms: int
    size: int = 0  # in bytes, including the header
    respond: Respond | None = None  # receives the response to a piece of a request; None: the response is sent

    def without_body(self) -> Request:
        """Return the request without its body, which may refer to the receive buffer. Responses need only the rest."""
        return _new_tuple(Request, (*self[:5], None, *self[6:]))


class Reply(NamedTuple):
    """An encoded response without its length prefix, or None as `parts` if nothing is sent (acks=0)."""

    connection_id: int
    parts: list[Part] | None
    throttle_ms: int = 0
    close: bool = False
