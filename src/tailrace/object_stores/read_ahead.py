"""ReadAhead: fetches parts of objects in advance, in the order in which they were announced.

Several parts are fetched in parallel, to hide the latency of the store. The number of parts that are in flight or
fetched but not taken is bounded, and so is memory. Parts of several objects form one queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4


class Workers:
    """A thread pool that is created with the first task."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="tailrace-object")
        return self._threads.submit(work, *arguments)


class Part:
    """A range of an object that will be read. `fetch` gets its bytes, in any thread."""

    __slots__ = ("coming", "end", "fetch", "start")

    def __init__(self, start: int, end: int, fetch: Callable[[int, int], bytes]) -> None:
        self.start = start
        self.end = end
        self.fetch = fetch
        self.coming: Future[bytes] | None = None


class ReadAhead:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._lock = Lock()
        self._waiting: deque[Part] = deque()
        self._held = 0  # parts that are in flight, or fetched and not taken yet

    def announce(self, parts: Iterable[Part]) -> None:
        with self._lock:
            self._waiting += parts
            self._fill()

    def take(self, part: Part) -> bytes:
        with self._lock:
            if part.coming is None:  # needed now, although earlier parts are not fetched yet
                self._waiting.remove(part)
                self._start(part)
            coming = part.coming
        assert coming is not None
        try:
            return coming.result()
        finally:
            with self._lock:
                self._held -= 1
                self._fill()

    def drop(self, parts: Iterable[Part]) -> None:
        """Cancel parts that will not be taken."""
        with self._lock:
            for part in parts:
                if part.coming is None:
                    self._waiting.remove(part)
                else:
                    part.coming.cancel()
                    self._held -= 1
            self._fill()

    def _fill(self) -> None:
        while self._waiting and self._held < PARTS_AT_ONCE:
            self._start(self._waiting.popleft())

    def _start(self, part: Part) -> None:
        part.coming = self._workers.submit(part.fetch, part.start, part.end - part.start)
        self._held += 1
