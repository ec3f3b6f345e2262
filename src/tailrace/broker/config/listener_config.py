"""Listeners: where a broker listens, what it tells others about that, and how each is secured.

    listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093
    advertised.listeners=PLAINTEXT://kafka.example.org:9092
    listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT

Names are upper case whatever is written. A host that is left out stands for all interfaces, port 0 for one that is
free.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tailrace.model.topic_config import InvalidConfig

SECURITY_PROTOCOLS: Final[Mapping[str, int]] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_URI = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://(\[(?P<six>[0-9a-fA-F:.%a-z]+)\]|(?P<host>[^:/\[\]]*)):(?P<port>-?[0-9]+)"
)


class Listener(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def security_code(self) -> int:
        return SECURITY_PROTOCOLS[self.security_protocol]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_security_map(text: str) -> dict[str, str]:
    """Listener name → security protocol."""
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip() for part in pair.partition(":"))
        if not name or protocol not in SECURITY_PROTOCOLS:
            raise InvalidConfig(f"listener.security.protocol.map: '{pair}' is no listener with a security protocol")
        found[name.upper()] = protocol
    return found


def parse_listeners(
    values: Sequence[str], security: Mapping[str, str], what: str, *, distinct_ports: bool = True
) -> list[Listener]:
    found = []
    for value in values:
        match = _URI.fullmatch(value)
        if match is None:
            raise InvalidConfig(f"{what}: '{value}' is no listener; one is NAME://host:port")
        name, port = match["name"].upper(), int(match["port"])
        if not -1 <= port <= 65535:
            raise InvalidConfig(f"{what}: there is no port {port}")
        if name not in security:
            raise InvalidConfig(f"{what}: listener.security.protocol.map has no security protocol for {name}")
        found.append(Listener(name, match["six"] or match["host"], port, security[name]))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InvalidConfig(f"{what}: each listener must have a name of its own")
    if distinct_ports:
        _check_ports(found, what)
    return found


def _check_ports(listeners: Sequence[Listener], what: str) -> None:
    """A port may be used twice by one IPv4 and one IPv6 address only."""
    for one in listeners:
        others = [other for other in listeners if other is not one and other.port == one.port and one.port > 0]
        if others and not (len(others) == 1 and (":" in one.host) != (":" in others[0].host)):
            raise InvalidConfig(f"{what}: port {one.port} is used more than once")
