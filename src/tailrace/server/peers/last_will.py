"""LastWill: when a broker is killed, a small process that outlives it notifies the controllers at once.

After a crash the partitions of a broker have no leader until its session expires: nine seconds by default. But its
machine notices at once. So a second process reads from a pipe whose other end only the broker has. When the pipe is
closed and the will was not revoked, it sends the prepared frame: a heartbeat that asks to be fenced. The frame has the
broker's epoch, so that it cannot harm a later start of the broker (`last_will_process.py`).

If the whole machine or container stops, both processes stop, and the session expires as usual.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tailrace.client.network.address import Address
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import BrokerHeartbeatRequest

_PROGRAM: Final = Path(__file__).with_name("last_will_process.py")
_VERSION: Final = 0  # all controllers support it, and it has all needed fields
# Service managers send these to all processes of a service, while the broker still does its controlled shutdown.
_IGNORED_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LOGGER: Final = logging.getLogger("tailrace.heartbeats")


class LastWill:
    """For use by one thread."""

    def __init__(self) -> None:
        self._pid = -1
        self._pipe = -1
        self._written = b""
        self._has_failed = False

    def write(self, broker_id: int, broker_epoch: int, addresses: Sequence[Address]) -> None:
        """Store the report to send if this process dies, and the controllers, the most likely one first."""
        request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=broker_epoch, want_fence=True)
        header = RequestHeader(BrokerHeartbeatRequest.SCHEMA.api_key or 0, _VERSION, 1, "tailrace-last-will")
        parts = [write_request_header(header), request.encode(_VERSION)]
        frame = b"".join([frame_length(parts), *parts])
        places = " ".join(f"{one.host}:{one.port}" for one in addresses)
        self._put(f"{frame.hex()} {places}\n".encode())

    def close(self, *, is_revoked: bool) -> None:
        """End the process. Unless the will is revoked, the report is sent now."""
        if self._pipe < 0:
            return
        if is_revoked:
            self._put(b"\n")
        with contextlib.suppress(OSError):
            os.close(self._pipe)
        self._pipe = -1
        if is_revoked:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)

    def _put(self, line: bytes) -> None:
        if line == self._written or self._has_failed:
            return
        try:
            if self._pipe < 0:
                self._start()
            os.write(self._pipe, line)
            self._written = line
        except (OSError, NotImplementedError) as error:
            # Without it the broker works as any other.
            self._has_failed = True
            _LOGGER.warning("the controllers will not be notified at once if this broker is killed: %s", error)

    def _start(self) -> None:
        reading, writing = os.pipe()
        null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", str(_PROGRAM)],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), null, (os.POSIX_SPAWN_DUP2, 1, 2)],
                setsid=True,
                setsigmask=_IGNORED_SIGNALS,
            )
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
