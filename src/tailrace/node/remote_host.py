"""remote_host: remote stores, and the threads that wait for them.

A lane is a set of threads for one kind of work: copy, expiration or read. So reads never wait behind copies. Threads
are started when work waits, and are daemons: a stop of the broker does not wait for a store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue

from tailrace.broker.startup.environment import RemoteHost
from tailrace.log.disk.files import Files
from tailrace.model.topic_config import InvalidConfig
from tailrace.tiers.steps import Work
from tailrace.tiers.stores.opening import open_store
from tailrace.tiers.stores.remote_store import RemoteStore
from tailrace.tiers.stores.store_settings import WrongStore


def remote_host(
    files: Files, call_soon: Callable[[Callable[[], None]], bool], clock_ms: Callable[[], int]
) -> RemoteHost:
    lanes = _Lanes(call_soon, clock_ms)
    return RemoteHost(partial(_open, files, clock_ms), lanes.submit)


def _open(files: Files, clock_ms: Callable[[], int], name: str, settings: Mapping[str, str]) -> RemoteStore:
    """Return the store that a class name of Kafka or Aiven means. Raise InvalidConfig if there is none."""
    try:
        return open_store(name, settings, files, clock_ms)
    except WrongStore as error:
        raise InvalidConfig(str(error)) from None


class _Lanes:
    def __init__(self, call_soon: Callable[[Callable[[], None]], bool], clock_ms: Callable[[], int]) -> None:
        self._call_soon = call_soon
        self._clock_ms = clock_ms
        self._lanes: dict[str, _Lane] = {}

    def submit(self, lane: str, work: Work, threads_max: int) -> None:
        """Run work on a thread of the lane. Called on the loop."""
        if lane not in self._lanes:
            self._lanes[lane] = _Lane(lane, self._run)
        self._lanes[lane].submit(work, threads_max)

    def _run(self, lane: _Lane, work: Work) -> None:
        try:
            result = work.run()
        except Exception as error:
            self._call_soon(partial(self._failed, lane, work, error))
        else:
            self._call_soon(partial(self._applied, lane, work, result))

    def _applied(self, lane: _Lane, work: Work, result: object) -> None:
        lane.unfinished -= 1
        work.apply(result, self._clock_ms())

    def _failed(self, lane: _Lane, work: Work, error: Exception) -> None:
        lane.unfinished -= 1
        work.failed(error, self._clock_ms())


class _Lane:
    """Threads that take work from one queue."""

    def __init__(self, name: str, run: Callable[[_Lane, Work], None]) -> None:
        self._name = name
        self._run = run
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        self._threads = 0
        self.unfinished = 0

    def submit(self, work: Work, threads_max: int) -> None:
        self.unfinished += 1
        while self._threads > threads_max:  # the pool was made smaller
            self._threads -= 1
            self._waiting.put(None)
        if self._threads < min(self.unfinished, threads_max):
            self._threads += 1
            name = f"tailrace-remote-{self._name}-{self._threads}"
            threading.Thread(target=self._take, name=name, daemon=True).start()
        self._waiting.put(work)

    def _take(self) -> None:
        while (work := self._waiting.get()) is not None:
            self._run(self, work)
