"""BrokerProcess: `tailrace serve` as a child process, on the same data as in the last run."""

from __future__ import annotations

import ctypes
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_STOP_TIMEOUT_S: Final = 20
_PREFERRED_PORT: Final = 9092
_PR_SET_PDEATHSIG: Final = 1


class BrokerFailed(Exception):
    """The broker did not start; the message has its output."""


class BrokerProcess:
    def __init__(self, directory: Path) -> None:
        self._data = directory / "broker"
        self._log = directory / "broker.log"
        self._process: subprocess.Popen[str] | None = None
        self.bootstrap = ""

    def __enter__(self) -> Self:
        self._data.parent.mkdir(parents=True, exist_ok=True)
        port = _PREFERRED_PORT if _is_free(_PREFERRED_PORT) else 0
        command = [sys.executable, "-m", "tailrace", "serve", "--data", str(self._data), "--port", str(port)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,  # Ctrl-C is for this process only: the broker is stopped after the pipeline
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )  # fmt: skip
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        address = re.search(r"(127\.0\.0\.1:\d+)", ready)
        if address is None:
            self._end()
            raise BrokerFailed(f"the broker did not start: {self._log.read_text().strip()[-2000:] or ready}")
        self.bootstrap = address[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _end_with_parent() -> None:
    """End the broker when this process ends in any way, even by kill -9, so that no broker keeps the data locked."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
