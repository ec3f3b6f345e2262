"""ConsoleBeside: the console of `tailrace serve --console`, a child process of the broker.

For the broker the console is a client like any other. The child ends when its standard input does, so it never outlives
the broker, even if that is killed.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from tailrace.cli.connection.client_properties import given_settings
from tailrace.cli.connection.profiles import NO_PROFILE
from tailrace.cli.console.console_arguments import PREFIX
from tailrace.cli.console.console_settings import ConsoleSettings, check_login, split_address
from tailrace.cli.errors import CommandError

_STOPPED_S: Final = 5.0
_LOGGER = logging.getLogger("tailrace.console")


class ConsoleBeside:
    def __init__(self, options: argparse.Namespace) -> None:
        """`options` are those of `serve`. Raise a CommandError if the console could not start with them."""
        self._options = options
        self._client_config: str | None = options.console_config
        self._has_login: bool = options.console_login
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopping = False
        host, port = split_address(options.console)
        settings = ConsoleSettings(
            host,
            port,
            (),
            has_login=self._has_login,
            tls_certificate=options.console_tls_certificate,
            tls_key=options.console_tls_key,
        )
        settings.check("--console", PREFIX)
        settings.tls_context(PREFIX)
        if self._has_login != (self._client_config is not None):
            raise CommandError(
                f"{PREFIX}login and {PREFIX}config FILE need each other: the file has the settings with which visitors"
                " log in to a listener (security.protocol, ssl.…, sasl.mechanism)"
            )

        if self._client_config is not None:
            check_login(given_settings(NO_PROFILE, self._client_config, ()), PREFIX)

    def check_listeners(self, protocols: Iterable[str]) -> None:
        """Raise a CommandError if no listener can be used with the settings of the console."""
        if self._client_config is None and "PLAINTEXT" not in protocols:
            raise CommandError(
                f"--console: no listener has the protocol PLAINTEXT, so {PREFIX}config FILE has to name the settings"
                f" with which a client connects (security.protocol, ssl.…, sasl.mechanism), and {PREFIX}login lets"
                " visitors log in"
            )
        if self._has_login and not any(one.startswith("SASL") for one in protocols):
            raise CommandError(
                f"{PREFIX}login: visitors log in with a user and a password, so a listener must have the protocol"
                " SASL_SSL or SASL_PLAINTEXT; client certificates of browsers are not supported"
            )

    def start(self, listeners: Sequence[tuple[str, str]], data: Sequence[str], metrics: str | None) -> None:
        """Start the console. `listeners` are pairs of security protocol and address."""
        wanted = "SASL" if self._has_login else "PLAINTEXT"
        address = next((one for protocol, one in listeners if protocol.startswith(wanted)), listeners[0][1])
        words = ["--listen", self._options.console, "--bootstrap", address, "--ends-with-input"]
        words += [f"--data={path}" for path in data]
        if metrics is not None:
            words += ["--metrics", metrics]
        words += self._chosen()
        self._process = subprocess.Popen([sys.executable, "-m", "tailrace", "console", *words], stdin=subprocess.PIPE)
        threading.Thread(target=self._watch, args=(self._process,), name="tailrace-console", daemon=True).start()

    def _chosen(self) -> list[str]:
        """Return the options of `console` that the options of `serve` stand for."""
        words = ["--console-write"] * self._options.console_write + ["--login"] * self._has_login
        values = {"command-config": self._client_config}
        for name in ("tls-certificate", "tls-key", "schema-registry", "lag-every"):
            values[name] = getattr(self._options, f"console_{name.replace('-', '_')}")
        words += [f"--{name}={value}" for name, value in values.items() if value is not None]
        return words + [f"--host-name={name}" for name in self._options.console_host_name]

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        if not self._is_stopping:
            _LOGGER.error("the console has ended with status %d; the broker continues without it", status)

    def stop(self) -> None:
        """End the console."""
        self._is_stopping = True
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_STOPPED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def local_address(host: str, port: int) -> str:
    """Return the address of a listener as this machine reaches it."""
    if host in ("", "0.0.0.0"):
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
