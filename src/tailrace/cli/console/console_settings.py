"""ConsoleSettings: where the console listens, which cluster and files it shows, and what it allows."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from tailrace.cli.errors import CommandError


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    host: str
    port: int
    connection: tuple[str, ...]  # options of every command that connects to the cluster
    data: str | None = None  # the data directory to draw
    metrics: str | None = None  # the metrics address of the broker
    may_write: bool = False
    has_login: bool = False
    tls_certificate: str | None = None
    tls_key: str | None = None
    schema_registry: str | None = None  # decodes keys and values of records
    lag_every_s: float | None = None  # how often the lag of groups is recorded
    host_names: tuple[str, ...] = ()  # further names under which browsers reach the console

    @property
    def has_tls(self) -> bool:
        return self.tls_certificate is not None

    def check(self) -> None:
        """Raise a CommandError if other machines could use the console without a login, or read a password."""
        if is_loopback(self.host):
            return
        if not (self.has_tls and self.has_login):
            raise CommandError(
                f"--listen {self.host}: other machines can reach this address, so the console needs --login and"
                " --tls-certificate FILE there; or listen on 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Return True if only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_address(text: str) -> tuple[str, int]:
    """Split HOST:PORT, [IPV6]:PORT or PORT."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise CommandError(f"{text!r} is not an address: write HOST:PORT with a port from 0 to 65535")
    return host, int(port)
