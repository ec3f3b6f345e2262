"""ConsoleBeside: the console of `tailrace serve --console`, a child process of the broker.

For the broker the console is a client like any other. The child ends when its standard input does, so it never outlives
the broker, even if that is killed.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from tailrace.cli.console.console_settings import ConsoleSettings, split_address
from tailrace.cli.errors import CommandError

_STOPPED_S: Final = 5.0
_LOGGER = logging.getLogger("tailrace.console")


class ConsoleBeside:
    def __init__(self, address: str, *, may_write: bool, client_config: str | None) -> None:
        self._address = address
        self._may_write = may_write
        self._client_config = client_config
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopping = False
        host, port = split_address(address)
        ConsoleSettings(host, port, ()).check()

    def check_listeners(self, protocols: Iterable[str]) -> None:
        """Raise a CommandError if no listener can be used without settings of a client."""
        if self._client_config is None and "PLAINTEXT" not in protocols:
            raise CommandError(
                "--console: no listener has the protocol PLAINTEXT, so --console-config FILE has to name the settings"
                " with which a client connects: security.protocol, ssl.…, sasl.mechanism"
            )

    def start(self, listeners: Sequence[tuple[str, str]], data: str, metrics: str | None) -> None:
        """Start the console. `listeners` are pairs of security protocol and address."""
        address = next((one for protocol, one in listeners if protocol == "PLAINTEXT"), listeners[0][1])
        words = ["--listen", self._address, "--bootstrap", address, "--data", data, "--ends-with-input"]
        if metrics is not None:
            words += ["--metrics", metrics]
        if self._may_write:
            words.append("--console-write")
        if self._client_config is not None:
            words += ["--command-config", self._client_config, "--login"]
            address = next((one for protocol, one in listeners if protocol.startswith("SASL")), address)
            words[words.index("--bootstrap") + 1] = address
        self._process = subprocess.Popen([sys.executable, "-m", "tailrace", "console", *words], stdin=subprocess.PIPE)
        threading.Thread(target=self._watch, args=(self._process,), name="tailrace-console", daemon=True).start()

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
