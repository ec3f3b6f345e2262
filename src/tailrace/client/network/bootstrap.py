"""Bootstrap lists: the broker addresses that a user gives to a client.

localhost:9092    kafka-1:9092,kafka-2:9092    [::1]:9092    PLAINTEXT://localhost:9092    localhost (port 9092)
"""

from __future__ import annotations

import re
from typing import Final

from tailrace.client.errors import InvalidAddress, UnsupportedSecurity
from tailrace.client.network.address import Address

DEFAULT_PORT: Final = 9092
_ADDRESS = re.compile(
    r"(?:(?P<scheme>[A-Za-z_0-9]+)://)?(?:\[(?P<six>[^\]]+)\]|(?P<host>[^\[\]:/\s]+))(?::(?P<port>[0-9]{1,6}))?"
)


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Return the addresses in a bootstrap list, in order and each once. Raise InvalidAddress or UnsupportedSecurity."""
    addresses: dict[Address, None] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        found = _ADDRESS.fullmatch(word)
        if found is None:
            raise InvalidAddress(f"{word!r} is not a bootstrap address: write host:port")
        if found["scheme"] and found["scheme"].upper() != "PLAINTEXT":
            raise UnsupportedSecurity(
                f"{word!r} has the security protocol {found['scheme']}: write host:port, and set security.protocol"
            )
        port = int(found["port"] or DEFAULT_PORT)
        if not 0 < port < 65536:
            raise InvalidAddress(f"{word!r} has an invalid port: it must be between 1 and 65535")
        addresses[Address(found["six"] or found["host"], port)] = None
    if not addresses:
        raise InvalidAddress("the bootstrap address is empty: write host:port")
    return tuple(addresses)
