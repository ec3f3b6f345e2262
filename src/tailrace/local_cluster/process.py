"""ChildProcess: a node as a child process. NodeProcess: a node of the cluster, with its output in a log file.

The process has its own session. So Ctrl-C at the terminal reaches only the parent process, which stops the nodes in the
right order.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import Final

from tailrace.local_cluster.cluster_plan import HOST, Node

_LAST_LOG_LINES: Final = 8
_CONNECT_TIMEOUT_S: Final = 0.5


class ChildProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status; None while the process runs."""
        return self._process.poll()

    @property
    def is_running(self) -> bool:
        return self.status is None

    @property
    def has_succeeded(self) -> bool:
        """True if the process has ended with status 0."""
        return self.status == 0

    @property
    def ending(self) -> str:
        """The end of the process as text, such as "ended with status 1"."""
        status = self.status
        if status is None:
            return "runs"
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    def request_stop(self) -> None:
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.is_running:
            self._process.kill()

    def wait(self) -> None:
        self._process.wait()


class NodeProcess(ChildProcess):
    def __init__(self, node: Node, command: Sequence[str], kept_open: Sequence[int] = ()) -> None:
        """Start the process. The descriptors in kept_open stay open in the node, even if the parent ends."""
        self.node = node
        self.started = time.monotonic()
        self._log_start = node.log.stat().st_size if node.log.exists() else 0
        with node.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=kept_open,
            )
        super().__init__(process)

    @property
    def is_listening(self) -> bool:
        try:
            socket.create_connection((HOST, self.node.port), timeout=_CONNECT_TIMEOUT_S).close()
        except OSError:
            return False
        return True

    def last_log_lines(self) -> list[str]:
        """Return the last lines that the node has logged since its start."""
        if not self.node.log.exists():
            return []
        with self.node.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace").splitlines()[-_LAST_LOG_LINES:]
