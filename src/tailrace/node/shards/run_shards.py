"""run_shards: the parent of the shards: start, watch, restart, and stop on a signal.

The parent holds the locks of the directories and the sockets between the shards. Shards have sessions of their own, so
Ctrl-C at a terminal reaches only the parent. If the parent is killed, the shards stop by themselves.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tailrace.log.disk.files import DiskFiles
from tailrace.node.shards.adoption import take_directories
from tailrace.node.shards.shard_child import ShardChild
from tailrace.node.shards.shard_settings import (
    Login,
    check_client_ports,
    data_dirs,
    first_node_id,
    settings_of_shard,
)
from tailrace.node.shards.shard_sockets import ShardSockets
from tailrace.node.shards.supervisor import Supervisor

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_WAIT_S_MAX: Final = 0.5
_HURRY_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """Options of the command that all shards get."""

    log_level: str
    log_format: str
    umask: int
    credentials: tuple[str, ...] = ()
    cluster_id: str | None = None


class ShardsFailed(Exception):
    """A shard could not be started, or not be restarted."""

    def __init__(self, reason: str, *, has_served: bool) -> None:
        super().__init__(reason)
        self.has_served = has_served


class ShardRun:
    def __init__(self, properties: Mapping[str, str], count: int, options: ShardOptions, *, has_metrics: bool) -> None:
        """Lock the directories and bind sockets. Raise an error that says what prevents the start."""
        self.count = count
        self._properties = properties
        self._options = options
        self._login = Login.draw()
        check_client_ports(properties, count)
        files = DiskFiles()
        files.set_umask(options.umask)
        self._locks = take_directories(files, data_dirs(properties), count)
        self.sockets = ShardSockets(properties, count, has_metrics=has_metrics)
        self.shards: dict[int, ShardChild] = {}  # the latest process of each shard, by number
        self._selector = selectors.DefaultSelector()
        self.supervisor = Supervisor(count, self._launch)

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until a signal asks to stop. Raise ShardsFailed if a shard cannot be started."""
        supervisor = self.supervisor
        is_announced = False
        error: Exception | None = None
        with _signals(supervisor.request_stop) as wakeup:
            self._selector.register(wakeup, selectors.EVENT_READ)
            try:
                supervisor.start(time.monotonic())
                while not supervisor.has_ended:
                    self._wait(wakeup)
                    supervisor.tick(time.monotonic())
                    if supervisor.has_served and not is_announced:
                        is_announced = True
                        error = _error_of(on_ready)
                        if error is not None:
                            supervisor.request_stop()
            finally:
                self._end()
        if error is not None:
            raise error
        if supervisor.failure is not None:
            raise ShardsFailed(supervisor.failure, has_served=supervisor.has_served)

    def _launch(self, number: int) -> ShardChild:
        settings = settings_of_shard(
            self._properties, number, self.sockets.of(number), self.sockets.controller_port, self._login
        )
        options = self._options
        document = {
            "properties": settings,
            "logLevel": options.log_level,
            "logFormat": options.log_format,
            "credentials": list(options.credentials) if number == 1 else [],
            "clusterId": options.cluster_id if number == 1 else None,
        }
        descriptors = [descriptor for _, descriptor in self.sockets.of(number).values()]
        shard = ShardChild(number, document, descriptors, first_node_id(self._properties))
        self.shards[number] = shard
        self._selector.register(shard.output, selectors.EVENT_READ, shard)
        return shard

    def _wait(self, wakeup: int) -> None:
        """Wait for a report of a shard, an end, a signal or a deadline."""
        deadline_s = self.supervisor.next_deadline_s()
        wait_s = _WAIT_S_MAX if deadline_s is None else min(max(deadline_s - time.monotonic(), 0), _WAIT_S_MAX)
        for key, _ in self._selector.select(wait_s):
            if key.data is None:
                os.read(wakeup, 4_096)
            elif not key.data.read():
                self._selector.unregister(key.fd)
                self._reap(key.data)

    def _reap(self, shard: ShardChild) -> None:
        """Wait a moment for the end of a process that has closed its output."""
        until_s = time.monotonic() + _WAIT_S_MAX
        while shard.is_running and time.monotonic() < until_s:
            time.sleep(_HURRY_S)

    def _end(self) -> None:
        """Leave no process behind, whatever has ended the loop."""
        for shard in self.shards.values():
            if shard.is_running:
                shard.kill()
                shard.wait()
        self._selector.close()
        self.sockets.close()
        for lock in self._locks:
            lock.close()

    def ready(self, number: int) -> dict[str, Any]:
        """Return what a shard has reported when it was ready."""
        return self.shards[number].ready or {}


def _error_of(act: Callable[[], None]) -> Exception | None:
    """Return the error of a call. The shards are stopped in order before it is raised."""
    try:
        act()
    except Exception as error:
        return error
    return None


@contextmanager
def _signals(request_stop: Callable[[], None]) -> Iterator[int]:
    """Call `request_stop` on SIGTERM and SIGINT. Yield a descriptor that is readable after a signal."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = {number: signal.signal(number, lambda *_: request_stop()) for number in STOP_SIGNALS}
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
