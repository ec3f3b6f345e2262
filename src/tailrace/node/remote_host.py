"""remote_host: remote stores, and the threads that wait for them.

A lane is a set of threads for one kind of work: copy, expiration or read. So reads never wait behind copies. Threads
are started when work waits, and are daemons: a stop of the broker does not wait for a store. A thread whose work does
not return is abandoned: another one replaces it, and it ends when its work returns.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue
from typing import Final

from tailrace.broker.startup.environment import RemoteHost
from tailrace.log.disk.files import Files
from tailrace.model.topic_config import InvalidConfig
from tailrace.tiers.steps import Work
from tailrace.tiers.stores.opening import open_store
from tailrace.tiers.stores.remote_store import RemoteStore
from tailrace.tiers.stores.store_settings import WrongStore

_log = logging.getLogger(__name__)

ABANDONED_MAX: Final = 16  # threads of a lane


def remote_host(
    files: Files, call_soon: Callable[[Callable[[], None]], bool], clock_ms: Callable[[], int]
) -> RemoteHost:
    lanes = _Lanes(call_soon, clock_ms)
    return RemoteHost(partial(_open, files, clock_ms), lanes.submit, lanes.abandon)


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

    def abandon(self, lane: str, work: Work) -> None:
        """Replace the thread that runs the work. Called on the loop."""
        self._lanes[lane].abandon(work)

    def _run(self, lane: _Lane, work: Work) -> None:
        try:
            result = work.run()
        except Exception as error:
            self._call_soon(partial(self._failed, lane, work, error))
        else:
            self._call_soon(partial(self._applied, lane, work, result))

    def _applied(self, lane: _Lane, work: Work, result: object) -> None:
        lane.finished(work)
        work.apply(result, self._clock_ms())

    def _failed(self, lane: _Lane, work: Work, error: Exception) -> None:
        lane.finished(work)
        work.failed(error, self._clock_ms())


class _Lane:
    """Threads that take work from one queue. The loop calls all methods but `_take`."""

    def __init__(self, name: str, run: Callable[[_Lane, Work], None]) -> None:
        self._name = name
        self._run = run
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        self._threads = 0  # without the abandoned ones
        self._threads_max = 0
        self._started = 0
        self._unfinished: set[Work] = set()
        self._running: set[Work] = set()
        self._abandoned: set[Work] = set()
        self._lock = threading.Lock()

    def submit(self, work: Work, threads_max: int) -> None:
        self._unfinished.add(work)
        self._threads_max = threads_max
        while self._threads > threads_max:  # the pool was made smaller
            self._threads -= 1
            self._waiting.put(None)
        self._start_threads()
        self._waiting.put(work)

    def _start_threads(self) -> None:
        while self._threads < min(len(self._unfinished), self._threads_max):
            self._threads += 1
            self._started += 1
            name = f"tailrace-remote-{self._name}-{self._started}"
            threading.Thread(target=self._take, name=name, daemon=True).start()

    def abandon(self, work: Work) -> None:
        """Start another thread for the one that runs the work, unless too many threads are abandoned."""
        with self._lock:
            if work not in self._running or len(self._abandoned) >= ABANDONED_MAX:
                return
            self._abandoned.add(work)
        self._unfinished.discard(work)
        self._threads -= 1
        _log.warning(
            "a thread of the remote store's lane %s does not return; it is replaced (%d of at most %d)",
            self._name,
            len(self._abandoned),
            ABANDONED_MAX,
        )
        self._start_threads()

    def finished(self, work: Work) -> None:
        self._unfinished.discard(work)

    def _take(self) -> None:
        while (work := self._waiting.get()) is not None:
            with self._lock:
                self._running.add(work)
            self._run(self, work)
            with self._lock:
                self._running.discard(work)
                if work in self._abandoned:  # another thread has replaced this one
                    self._abandoned.discard(work)
                    return
