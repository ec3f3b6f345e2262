"""ShardChild: a shard as a child process, seen from its parent.

The parent writes one line of JSON to the standard input of the child, with the settings. Later lines are notices:
`ended ID` names a broker whose process has ended. When the input ends, because the parent has ended, the child stops.

The child writes lines of JSON to its standard output: {"ready": …} when clients can connect, {"error": …} if it cannot
start. Its log goes to the standard error of the parent.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tailrace.local_cluster.process import ChildProcess

_MODULE: Final = "tailrace.cli.serving.shard_process"
_READ_BYTES: Final = 65_536


class ShardChild(ChildProcess):
    def __init__(
        self, number: int, document: Mapping[str, Any], descriptors: Sequence[int], first_node_id: int
    ) -> None:
        """Start the process. It inherits the descriptors."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=descriptors,
        )
        super().__init__(self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.number = number
        self.ready: dict[str, Any] | None = None  # what the shard has reported when clients could connect
        self.error: str | None = None  # why the shard cannot start
        self._first_node_id = first_node_id
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._unread = b""
        self._write(json.dumps(document))

    @property
    def is_ready(self) -> bool:
        return self.ready is not None

    @property
    def output(self) -> int:
        """The descriptor to wait at: it is readable when the shard has reported something, or has ended."""
        return self._output

    def read(self) -> bool:
        """Read what the shard has reported. Return False at the end of its output."""
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return True
        self._unread += data
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                document = json.loads(line)
                self.ready = document.get("ready", self.ready)
                self.error = document.get("error", self.error)
        return bool(data)

    def announce_end(self, number: int) -> None:
        """Notify the shard that the process of another one has ended."""
        self._write(f"ended {self._first_node_id + number - 1}")

    def close(self) -> None:
        """Release the pipes of a process that has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the process has ended, which its status shows
            data = f"{line}\n".encode()
            while data:
                data = data[os.write(self._input, data) :]
