"""Listeners: the addresses on which a broker listens, its advertised addresses, and the security protocol of each.

    listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093
    advertised.listeners=PLAINTEXT://kafka.example.org:9092
    listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT

Names are converted to upper case. A missing host means all interfaces. Port 0 means any free port.
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
    """Return the security protocol of each listener name."""
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip() for part in pair.partition(":"))
        if not name or protocol not in SECURITY_PROTOCOLS:
            raise InvalidConfig(
                f"listener.security.protocol.map: '{pair}' is not NAME:PROTOCOL; "
                f"the protocols are {', '.join(SECURITY_PROTOCOLS)}"
            )
        found[name.upper()] = protocol
    return found


def parse_listeners(
    values: Sequence[str], security: Mapping[str, str], key: str, *, distinct_ports: bool = True
) -> list[Listener]:
    found = []
    for value in values:
        match = _URI.fullmatch(value)
        if match is None:
            raise InvalidConfig(f"{key}: '{value}' is not a listener; write NAME://host:port")
        name, port = match["name"].upper(), int(match["port"])
        if not -1 <= port <= 65535:
            raise InvalidConfig(f"{key}: {port} is not a valid port (0-65535)")
        if name not in security:
            raise InvalidConfig(
                f"{key}: listener {name} has no security protocol; add it to listener.security.protocol.map"
            )
        found.append(Listener(name, match["six"] or match["host"], port, security[name]))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InvalidConfig(f"{key}: each listener must have a different name")
    if distinct_ports:
        _check_ports(found, key)
    return found


def _check_ports(listeners: Sequence[Listener], key: str) -> None:
    """Raise InvalidConfig for a port that is used twice, except by one IPv4 and one IPv6 address."""
    for one in listeners:
        others = [other for other in listeners if other is not one and other.port == one.port and one.port > 0]
        if others and not (len(others) == 1 and (":" in one.host) != (":" in others[0].host)):
            raise InvalidConfig(f"{key}: port {one.port} is used more than once")
