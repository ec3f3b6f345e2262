"""Finds out which security protocol a listener uses, after it closed a connection without a response.

A broker gives no reason when it closes a connection with the wrong security protocol, and a retry does not help. So a
second connection probes the port:

- A connection without TLS ended before its first response: does the port respond to a TLS handshake?
- A TLS handshake failed: does the port respond to ApiVersions without TLS?
- The first request after ApiVersions ended the connection: does the port respond to SaslHandshake with mechanisms?
- The port is silent: does it respond to an HTTP request, or to a TLS handshake?

Each function returns the error to raise, or None if the probe found no reason.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from struct import Struct
from typing import Any, Final

from tailrace.client.errors import ClientError, InvalidAnswer, UnsupportedSecurity
from tailrace.client.network.address import Address
from tailrace.client.network.retry_budget import SystemClock
from tailrace.client.network.sockets import OpenSocket, PlainSocket, fill, opener
from tailrace.client.security.security import Security
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.message import Message
from tailrace.protocol.messages import ApiVersionsRequest, SaslHandshakeRequest
from tailrace.protocol.registry import response_class

PROBE_SECONDS: Final = 3.0
_ANSWER_BYTES_MAX: Final = 65_536
_CORRELATION_ID: Final = 1
_HTTP: Final = b"HTTP/"
_INT32: Final = Struct(">i")


def explain_lost_connection(
    address: Address, security: Security, api_key: int, error: OSError
) -> UnsupportedSecurity | None:
    """Explain why the broker closed a connection before its response to the first or second request."""
    if is_tls_alert(error):
        return UnsupportedSecurity(f"{address} refuses the TLS connection: {tls_reason(error)}")
    if api_key == ApiKey.API_VERSIONS:
        return tls_required_error(address, security) if security.tls is None and _speaks_tls(address) else None
    if security.sasl is not None:
        return None
    mechanisms = _sasl_mechanisms(address, opener(security))
    if mechanisms is None:
        return None
    protocol = "SASL_PLAINTEXT" if security.tls is None else "SASL_SSL"
    return UnsupportedSecurity(
        f"{address} requires SASL: set security.protocol to {protocol}, "
        f"and sasl.mechanism to one of {', '.join(mechanisms) or 'none'}"
    )


def explain_failed_handshake(address: Address, security: Security, error: OSError) -> ClientError | None:
    """Explain why a TLS handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return UnsupportedSecurity(f"the certificate of {address} is not trusted: {error.verify_message}")
    if not is_tls_alert(error) and _is_http(address, PlainSocket):
        return http_server_error(address)
    is_ended = isinstance(error, ssl.SSLError | ConnectionResetError | BrokenPipeError)
    if is_ended and not is_tls_alert(error) and _speaks_plain_kafka(address):
        protocol = "PLAINTEXT or SASL_PLAINTEXT" if security.sasl is None else "SASL_PLAINTEXT"
        return UnsupportedSecurity(f"{address} does not use TLS: set security.protocol to {protocol}")
    if isinstance(error, ssl.SSLError):
        return UnsupportedSecurity(f"the TLS handshake with {address} failed: {tls_reason(error)}")
    return None


def explain_silence(address: Address, security: Security) -> ClientError | None:
    """Explain why a listener does not respond to the first request."""
    if _is_http(address, opener(security)):
        return http_server_error(address)
    return tls_required_error(address, security) if security.tls is None and _speaks_tls(address) else None


def http_server_error(address: Address) -> InvalidAnswer:
    """Return the error of a client at an HTTP server."""
    return InvalidAnswer(f"{address} is an HTTP server, not a Kafka broker: give the port of a broker's listener")


def tls_required_error(address: Address, security: Security) -> UnsupportedSecurity:
    """Return the error of a client without TLS at a listener with TLS."""
    protocols = "SSL or SASL_SSL" if security.sasl is None else "SASL_SSL"
    return UnsupportedSecurity(f"{address} uses TLS: set security.protocol to {protocols}")


def is_tls_alert(error: OSError) -> bool:
    """Return True if the peer sent a TLS alert."""
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "").upper()


def tls_reason(error: OSError) -> str:
    """Return OpenSSL's reason as readable text."""
    reason = str(getattr(error, "reason", None) or error).lower().replace("_", " ")
    if "certificate required" in reason:
        reason += " (set ssl.keystore.location to the client's certificate)"
    return reason


def _speaks_tls(address: Address) -> bool:
    """Return True if the port responds to a TLS handshake, even with an alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent over this connection
    try:
        with (
            socket.create_connection(address, PROBE_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=address.host),
        ):
            return True
    except OSError as error:
        return is_tls_alert(error)


def _is_http(address: Address, open_socket: OpenSocket) -> bool:
    """Return True if the port responds to an HTTP request. A Kafka broker closes the connection instead."""
    clock = SystemClock()
    start = bytearray(len(_HTTP))
    try:
        with contextlib.closing(open_socket(address, PROBE_SECONDS)) as connection:
            connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            fill(memoryview(start), connection, clock.monotonic() + PROBE_SECONDS, clock)
    except OSError:
        return False
    return start == _HTTP


def _speaks_plain_kafka(address: Address) -> bool:
    return _answer(address, PlainSocket, ApiVersionsRequest(), 0) is not None


def _sasl_mechanisms(address: Address, open_socket: OpenSocket) -> list[str] | None:
    """Return the mechanisms that the listener offers, or None if it does not use SASL."""
    answer = _answer(address, open_socket, SaslHandshakeRequest(mechanism="NONE"), 1)
    if answer is None or answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    return sorted(answer.mechanisms)


def _answer(address: Address, open_socket: OpenSocket, message: Message, version: int) -> Any:
    """Send one request over a new connection. Return the response, or None if there is none."""
    api_key = message.SCHEMA.api_key
    assert api_key is not None
    clock = SystemClock()
    deadline_s = clock.monotonic() + PROBE_SECONDS
    parts: list[Any] = [write_request_header(RequestHeader(api_key, version, _CORRELATION_ID, "tailrace"))]
    message.write(parts, version)
    try:
        with contextlib.closing(open_socket(address, PROBE_SECONDS)) as connection:
            connection.sendall(b"".join([frame_length(parts), *parts]))
            length = bytearray(4)
            fill(memoryview(length), connection, deadline_s, clock)
            size = _INT32.unpack(length)[0]
            if not 4 <= size <= _ANSWER_BYTES_MAX:
                return None
            frame = memoryview(bytearray(size))
            fill(frame, connection, deadline_s, clock)
        correlation_id, position = read_response_header(api_key, version, frame)
        if correlation_id != _CORRELATION_ID:
            return None
        return response_class(api_key).decode(frame, version, position)
    except (OSError, ProtocolError):
        return None
