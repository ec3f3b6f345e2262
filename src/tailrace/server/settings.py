"""ServerSettings: the configs of the network layer, with Kafka's names and Kafka 4.3's defaults.

Three defaults differ: `socket.receive.buffer.bytes`, `socket.send.buffer.bytes` and `queued.max.request.bytes`. The
constants below have the reasons.

`ServerSettings.parse` reads the strings of a `server.properties` and raises InvalidConfig with the reason. It ignores
configs of other layers. Some configs are our own: `tailrace.slices` (how ranges of files are sent), `tailrace.drain.ms`
(how long a stop waits for pending replies), `tailrace.chore.threads`, and `tailrace.metrics.port` with
`tailrace.metrics.host` (the address of /metrics; by default off, and on the loopback interface). A parent process that
has bound sockets for its child names their descriptors in `tailrace.inherited.sockets`: NAME:descriptor,…
"""

from __future__ import annotations

import os
import re
import select
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from tailrace.model.configs.config_definitions import java_integer
from tailrace.model.listener_settings import settings_of_listener
from tailrace.model.system_calls import lacks
from tailrace.model.topic_config import INT_MAX, LONG_MAX, InvalidConfig
from tailrace.server.connections.descriptors import Descriptors
from tailrace.server.connections.endpoints import (
    PORT_MAX,
    Endpoint,
    check_ports,
    parse_endpoints,
    parse_protocol_map,
    protocols_of,
)

if TYPE_CHECKING:
    from tailrace.server.peers.outgoing_security import OutgoingSecurity
    from tailrace.server.tls.listener_tls import ListenerTls

# The system chooses the size of a socket buffer. Kafka's 100 KB double the cost of receiving large requests.
SYSTEM_DEFAULT: Final = -1
SEND_BUFFER_BYTES: Final = 524_288  # with Kafka's 100 KB, which Linux doubles, a response of 1 MB fills it five times
QUEUED_REQUESTS: Final = 10  # requests of the largest size without queued.max.request.bytes; Kafka has no limit then
INHERITED: Final = "tailrace.inherited.sockets"
METRICS: Final = "METRICS"  # the name of the endpoint of /metrics
_PREFIX: Final = "listener.name."
_MAX_CONNECTIONS: Final = "max.connections"
_CREATION_RATE: Final = "max.connection.creation.rate"


class SliceStrategy(Enum):
    """The method of sending ranges of files; docs/decisions/0010-epoll-loop.md has the figures."""

    SENDFILE = "sendfile"
    PREAD = "pread"


DEFAULT_SLICES: Final = SliceStrategy.PREAD if lacks(select, "epoll") else SliceStrategy.SENDFILE


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Maximum number of connections, and maximum rate of new ones."""

    connections_max: int = INT_MAX
    connections_per_ip_max: int = INT_MAX
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    creation_rate_max: int = INT_MAX  # per second
    listener_connections_max: Mapping[str, int] = field(default_factory=dict)
    listener_creation_rate_max: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    listeners: tuple[Endpoint, ...] = (Endpoint("PLAINTEXT", "", 9092),)
    advertised: tuple[Endpoint, ...] = ()
    limits: LimitSettings = field(default_factory=LimitSettings)
    descriptors: Descriptors = field(default_factory=Descriptors)
    request_bytes_max: int = 104_857_600
    queued_bytes_max: int = QUEUED_REQUESTS * 104_857_600
    send_buffer_bytes: int = SEND_BUFFER_BYTES
    receive_buffer_bytes: int = SYSTEM_DEFAULT
    backlog: int = 50
    idle_ms_max: int = 600_000
    slices: SliceStrategy = DEFAULT_SLICES
    drain_ms: int = 2_000
    chore_threads: int = 2
    metrics: Endpoint | None = None
    tls: Mapping[str, ListenerTls] = field(default_factory=dict)  # of listeners with TLS
    # listeners with SASL → the largest request before authentication
    sasl_receive_bytes_max: Mapping[str, int] = field(default_factory=dict)
    owns_process: bool = False  # nothing else runs in the process, so it may configure the garbage collector
    outgoing: OutgoingSecurity | None = None  # security of connections to other nodes; None: plain text
    client_id: str = "tailrace"  # of requests to other nodes
    inherited: Mapping[str, int] = field(default_factory=dict)  # listeners that are already bound → their descriptors

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> ServerSettings:
        listeners = parse_endpoints("listeners", properties.get("listeners", "PLAINTEXT://:9092"))
        if not listeners:
            raise InvalidConfig("listeners: the list is empty; set at least one, such as PLAINTEXT://localhost:9092")
        check_ports("listeners", listeners)
        protocol_map = parse_protocol_map(properties.get("listener.security.protocol.map", ""))
        protocols = protocols_of(listeners, protocol_map)
        slices = properties.get("tailrace.slices", DEFAULT_SLICES.value)
        if slices not in (strategy.value for strategy in SliceStrategy):
            raise InvalidConfig(f"tailrace.slices: {slices!r} is not valid; use sendfile or pread")
        if slices == SliceStrategy.SENDFILE.value and not hasattr(os, "sendfile"):
            raise InvalidConfig("tailrace.slices: sendfile is not available on this system; use pread")
        request_bytes_max = _integer(properties, "socket.request.max.bytes", 104_857_600, 1, INT_MAX)
        queued_bytes_max = _integer(properties, "queued.max.request.bytes", -1, -LONG_MAX, LONG_MAX)
        return cls(
            listeners=listeners,
            advertised=parse_endpoints("advertised.listeners", properties.get("advertised.listeners", "")),
            limits=_parse_limits(properties),
            request_bytes_max=request_bytes_max,
            queued_bytes_max=queued_bytes_max if queued_bytes_max > 0 else QUEUED_REQUESTS * request_bytes_max,
            send_buffer_bytes=_integer(
                properties, "socket.send.buffer.bytes", SEND_BUFFER_BYTES, SYSTEM_DEFAULT, INT_MAX
            ),
            receive_buffer_bytes=_integer(
                properties, "socket.receive.buffer.bytes", SYSTEM_DEFAULT, SYSTEM_DEFAULT, INT_MAX
            ),
            backlog=_integer(properties, "socket.listen.backlog.size", 50, 1, INT_MAX),
            idle_ms_max=_integer(properties, "connections.max.idle.ms", 600_000, -LONG_MAX, LONG_MAX),
            slices=SliceStrategy(slices),
            drain_ms=_integer(properties, "tailrace.drain.ms", 2_000, 0, INT_MAX),
            chore_threads=_integer(properties, "tailrace.chore.threads", 2, 1, 64),
            metrics=_parse_metrics(properties),
            tls=_parse_tls(properties, protocols),
            sasl_receive_bytes_max=_parse_sasl_receive_bytes_max(properties, protocols),
            inherited=_parse_inherited(properties.get(INHERITED, "")),
        )


def _parse_limits(properties: Mapping[str, str]) -> LimitSettings:
    by_listener: dict[str, dict[str, int]] = {_MAX_CONNECTIONS: {}, _CREATION_RATE: {}}
    for key in properties:
        for setting, values in by_listener.items():
            # Kafka reads the prefix in lower case, in whatever case the listener's name is written elsewhere.
            match = re.fullmatch(rf"{re.escape(_PREFIX)}([^.]+)\.{re.escape(setting)}", key)
            if match is not None:
                values[match[1].upper()] = _integer(properties, key, INT_MAX, 1, INT_MAX)
    return LimitSettings(
        connections_max=_integer(properties, _MAX_CONNECTIONS, INT_MAX, 0, INT_MAX),
        connections_per_ip_max=_integer(properties, "max.connections.per.ip", INT_MAX, 0, INT_MAX),
        per_ip_overrides=_parse_overrides(properties.get("max.connections.per.ip.overrides", "")),
        creation_rate_max=_integer(properties, _CREATION_RATE, INT_MAX, 0, INT_MAX),
        listener_connections_max=by_listener[_MAX_CONNECTIONS],
        listener_creation_rate_max=by_listener[_CREATION_RATE],
    )


def _parse_tls(properties: Mapping[str, str], protocols: Mapping[str, str]) -> dict[str, ListenerTls]:
    secured = {name: protocol for name, protocol in protocols.items() if protocol.endswith("SSL")}
    if not secured:
        return {}  # without loading OpenSSL
    from tailrace.server.tls.listener_tls import tls_of_listener

    return {name: tls_of_listener(properties, name, protocol) for name, protocol in secured.items()}


def _parse_sasl_receive_bytes_max(properties: Mapping[str, str], protocols: Mapping[str, str]) -> dict[str, int]:
    key = "sasl.server.max.receive.size"
    return {
        name: _integer(settings_of_listener(properties, name), key, 524_288, 1, INT_MAX)
        for name, protocol in protocols.items()
        if protocol.startswith("SASL_")
    }


def _parse_metrics(properties: Mapping[str, str]) -> Endpoint | None:
    if "tailrace.metrics.port" not in properties:
        if "tailrace.metrics.host" in properties:
            raise InvalidConfig("tailrace.metrics.host has no effect without tailrace.metrics.port; set both")
        return None
    port = _integer(properties, "tailrace.metrics.port", 0, 0, PORT_MAX)
    return Endpoint(METRICS, properties.get("tailrace.metrics.host", "127.0.0.1"), port)


def _parse_inherited(text: str) -> dict[str, int]:
    """Parse `tailrace.inherited.sockets`: NAME:descriptor,…"""
    inherited = {}
    for entry in filter(None, text.split(",")):
        name, _, descriptor = entry.partition(":")
        if not descriptor.isdecimal():
            raise InvalidConfig(f"{INHERITED}: {entry!r} is not of the form NAME:descriptor")
        inherited[name.upper()] = int(descriptor)
    return inherited


def _parse_overrides(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`: host:count,…"""
    overrides = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = entry.rpartition(":")
        if not colon or not count.strip().isdecimal():
            raise InvalidConfig(f"max.connections.per.ip.overrides: {entry!r} is not of the form host:count")
        overrides[host.strip().strip("[]")] = int(count)
    return overrides


def _integer(properties: Mapping[str, str], key: str, default: int, low: int, high: int) -> int:
    text = properties.get(key)
    if text is None:
        return default
    value = java_integer(text)
    if value is None:
        raise InvalidConfig(f"{key}: {text!r} is not a whole number")
    if not low <= value <= high:
        raise InvalidConfig(f"{key}: {value} is not between {low} and {high}")
    return value
