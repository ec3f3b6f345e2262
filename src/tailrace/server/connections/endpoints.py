"""Endpoint: name, host and port of a listener, from Kafka's `listeners` and `advertised.listeners`.

    listeners=PLAINTEXT://:9092,INTERNAL://[::1]:9093

A name is case-insensitive and kept in upper case. An empty host means every interface, port 0 a port that the system
chooses. Names differ; ports differ too, unless one host is an IPv4 address and the other an IPv6 address.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from tailrace.model.topic_config import InvalidConfig

_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_NOWHERE: Final = ("0.0.0.0", "::")
PORT_MAX: Final = 65_535
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def parse_endpoints(key: str, text: str) -> tuple[Endpoint, ...]:
    """Parse `listeners` or `advertised.listeners`."""
    endpoints = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _ENDPOINT.fullmatch(entry)
        if match is None:
            raise InvalidConfig(f"{key}: {entry!r} is not of the form NAME://host:port")
        name, host, port = match[1].strip().upper(), match[2], int(match[3])
        if not name:
            raise InvalidConfig(f"{key}: {entry!r} has no listener name")
        if port > PORT_MAX:
            raise InvalidConfig(f"{key}: {entry!r} has a port above the limit, {PORT_MAX}")
        endpoints.append(Endpoint(name, host, port))
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise InvalidConfig(f"{key}: listener {name} is listed twice; choose different names")
    return tuple(endpoints)


def check_ports(key: str, endpoints: Sequence[Endpoint]) -> None:
    """Refuse two listeners on one port, unless one has an IPv4 and the other an IPv6 address."""
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, group in by_port.items():
        if len(group) > 1 and sorted(_ip_version(endpoint.host) for endpoint in group) != [4, 6]:
            raise InvalidConfig(
                f"{key}: listeners {', '.join(endpoint.name for endpoint in group)} share port {port}; "
                "only an IPv4 and an IPv6 address may"
            )


def protocols_of(endpoints: Iterable[Endpoint], protocol_map: Mapping[str, str]) -> dict[str, str]:
    """Return the security protocol of each listener, by name."""
    found = {}
    for endpoint in endpoints:
        default = endpoint.name if endpoint.name in PROTOCOLS else None
        protocol = protocol_map.get(endpoint.name, default)
        if protocol is None:
            raise InvalidConfig(f"listener.security.protocol.map: no security protocol for listener {endpoint.name}")
        found[endpoint.name] = protocol
    return found


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse `listener.security.protocol.map`: NAME:PROTOCOL,…"""
    protocols = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or protocol.strip().upper() not in PROTOCOLS:
            raise InvalidConfig(f"listener.security.protocol.map: {entry!r} is not of the form NAME:PROTOCOL")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def advertise(bound: Sequence[Endpoint], wanted: Sequence[Endpoint], host_name: str) -> tuple[Endpoint, ...]:
    """Return the addresses for clients: `advertised.listeners`, or else the listeners, with real hosts and ports.

    A host that means every interface is replaced by this machine's name, port 0 by the bound port.
    """
    by_name = {endpoint.name: endpoint for endpoint in bound}
    advertised = []
    for endpoint in wanted or bound:
        if endpoint.name not in by_name:
            raise InvalidConfig(
                f"advertised.listeners: {endpoint.name} is not one of the listeners: {', '.join(by_name)}"
            )
        if wanted and endpoint.host in _NOWHERE:
            raise InvalidConfig(
                f"advertised.listeners: clients cannot connect to {endpoint.host}; use a host name or an address of "
                "this machine"
            )
        host = host_name if endpoint.host in ("", *_NOWHERE) else endpoint.host
        advertised.append(Endpoint(endpoint.name, host, endpoint.port or by_name[endpoint.name].port))
    return tuple(advertised)


def _ip_version(host: str) -> int:
    for family, version in ((socket.AF_INET, 4), (socket.AF_INET6, 6)):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return version
    return 0
