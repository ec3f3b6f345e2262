"""ConsoleSettings: where the console listens, which cluster and files it shows, and what it allows."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.cli.errors import CommandError


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    host: str
    port: int
    connection: tuple[str, ...]  # options of every command that connects to the cluster
    data: tuple[str, ...] = ()  # the data directories to draw
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

    def check(self, option: str = "--listen", prefix: str = "--") -> None:
        """Raise a CommandError if other machines could use the console without a login, or read a password.

        `option` has the address, and `prefix` begins the names of the other options.
        """
        if self.tls_key is not None and self.tls_certificate is None:
            raise CommandError(f"{prefix}tls-key needs {prefix}tls-certificate FILE")
        if not is_loopback(self.host) and not (self.has_tls and self.has_login):
            raise CommandError(
                f"{option} {self.host}: other machines can reach this address, so the console needs {prefix}login and"
                f" {prefix}tls-certificate FILE there; or listen on 127.0.0.1"
            )

    def tls_context(self, prefix: str = "--") -> ssl.SSLContext | None:
        """Return the context of https; None for http. Raise a CommandError if the files cannot be used."""
        if self.tls_certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.tls_certificate, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise CommandError(f"{prefix}tls-certificate {self.tls_certificate}: {error.strerror or error}") from error
        return context

    def directory_of(self, folder: str) -> str:
        """Return the data directory that has the folder of a partition, or the first one."""
        return next((one for one in self.data if os.path.isdir(os.path.join(one, folder))), self.data[0])


def check_login(properties: Mapping[str, str], prefix: str = "--") -> None:
    """Raise a CommandError if visitors cannot log in with a user and a password by these settings of a client."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    if not protocol.startswith("SASL"):
        raise CommandError(
            f"{prefix}login: visitors log in with a user and a password, so security.protocol must be SASL_SSL or"
            f" SASL_PLAINTEXT, not {protocol}; a console cannot pass on the client certificate of a browser"
        )
    if not (mechanism == "PLAIN" or mechanism.startswith("SCRAM-")):
        raise CommandError(
            f"{prefix}login: visitors log in with a user and a password, so sasl.mechanism must be PLAIN,"
            f" SCRAM-SHA-256 or SCRAM-SHA-512, not {mechanism or 'missing'}"
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
