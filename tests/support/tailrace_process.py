"""TailraceProcess: `tailrace serve` as a process of its own.

    with TailraceProcess(tmp_path / "data") as broker:
        …broker.bootstrap…
        broker.kill()                 # like kill -9
        broker.start()

The port is chosen once and kept over restarts. The standard error of the process is part of every error message.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.kafka_broker import free_port

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0


@functools.cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tailrace-bytecode-")


def _environment() -> dict[str, str]:
    """Return the environment of tests, but with cached bytecode, as for an installed package."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    if "PYTHONDONTWRITEBYTECODE" in os.environ:
        environment["PYTHONPYCACHEPREFIX"] = _bytecode().name
    return environment


class TailraceProcess:
    def __init__(self, data: Path, *options: str, port: int | None = None, wrapper: Sequence[str] = ()) -> None:
        """Create the process. `wrapper` is a command that runs it."""
        self.data = data
        self.options = options
        self.port = free_port() if port is None else port
        self._wrapper = wrapper
        self.ready_timeout_s = READY_TIMEOUT_S
        self.process: subprocess.Popen[bytes] | None = None
        self.ready_line = ""
        self.ready_s = 0.0
        self._log = data.parent / f"{data.name}.stderr"

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start, and wait until the process reports that it is ready."""
        began = time.perf_counter()
        self.launch()
        self.ready_line = self._read_line()
        self.ready_s = time.perf_counter() - began
        return self

    def launch(self) -> None:
        """Start without waiting."""
        assert self.process is None, "already running"
        self.data.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tailrace", "serve", "--data", str(self.data)]
        if not any(one.startswith("listeners=") for one in self.options):
            command += ["--port", str(self.port)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._wrapper, *command, *self.options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
            )

    def stop(self) -> int:
        """Stop cleanly, and return the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    @property
    def errors(self) -> str:
        """The standard error of all starts."""
        return self._log.read_text() if self._log.exists() else ""

    def _read_line(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        line = b""
        deadline = time.monotonic() + self.ready_timeout_s
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.kill()
                raise AssertionError(f"not ready after {self.ready_timeout_s:g} s:\n{self.errors}")
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                status = self._forget()
                raise AssertionError(f"ended with {status} before it was ready:\n{self.errors}")
            line += piece
        return line.decode()

    def _end(self, how: signal.Signals) -> int:
        assert self.process is not None, "not running"
        self.process.send_signal(how)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self._forget()
            raise AssertionError(f"did not end within {STOP_TIMEOUT_S:g} s:\n{self.errors}") from None
        return self._forget()

    def _forget(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        status = self.process.wait()
        self.process.stdout.close()
        self.process = None
        return status

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(AssertionError):
            if self.process is not None:
                self.kill()
