"""ClusterCommand: `tailrace cluster up` as a process, and its JSON output.

with ClusterCommand(tmp_path / "cluster", "--brokers", "3") as cluster:
    cluster.bootstrap, cluster.node("broker", 1)["pid"]
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 90.0


def free_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports, with free controller ports a hundred above."""
    while True:
        first = random.randrange(20_000, 31_000)
        with suppress(OSError):
            for port in (*range(first, first + count), *range(first + 100, first + 100 + count)):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first


class ClusterCommand:
    def __init__(self, data: Path, *options: str, port: int | None = None) -> None:
        self.data = data
        self.port = free_ports(10) if port is None else port
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.reported: dict[str, Any] = {}
        self._out = data.parent / f"{data.name}.out"
        self._errors = data.parent / f"{data.name}.err"

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    @property
    def bootstrap(self) -> str:
        return str(self.reported["bootstrap"])

    def node(self, role: str, node_id: int) -> dict[str, Any]:
        return next(one for one in self.reported["nodes"] if (one["role"], one["id"]) == (role, node_id))

    def launch(self) -> Self:
        """Start the command without waiting."""
        with self._out.open("wb") as out, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tailrace", "cluster", "up", "--json"),
                    *("--data", str(self.data), "--port", str(self.port), *self.options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            )
        return self

    def start(self) -> Self:
        """Start the command, and wait until clients can connect."""
        self.launch()
        assert self.process is not None
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            with suppress(json.JSONDecodeError):
                self.reported = json.loads(self._out.read_text())
                return self
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.errors}")
            time.sleep(0.05)
        self.stop()
        raise AssertionError(f"not ready after {READY_TIMEOUT_S:g} s:\n{self.errors}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop the command, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        assert self.process is not None
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end within {STOP_TIMEOUT_S:g} s:\n{self.errors}") from None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for one in self.reported.get("nodes", ()):
            with suppress(ProcessLookupError):
                os.kill(one["pid"], signal.SIGKILL)
