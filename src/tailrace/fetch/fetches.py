"""Fetches: takes a Fetch request from its session to its response.

    request ─► context (request_context.py) ─► plan (fetch_plan.py) ─► read (read.py) ─► enough? ─► response
                                                                         ▲                 │ no
                                                                         └── DelayedFetch ◄┘   (delayed_fetch.py)

A request is answered at once if max_wait_ms is 0, if no partition can be read, or if `min_bytes` are available. It is
also answered at once for an error, a diverging epoch or a preferred replica, and if a follower that serves consumers
lacks the high watermark. Otherwise it waits, and is read again when it is woken.

The caller gets a `Fetch` (`fetch.py`) when it is ready: now, within `start`, or later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.fetch.delayed_fetch import DelayedFetch
from tailrace.fetch.fetch import Fetch, FetchServices, Later, OnReady
from tailrace.fetch.fetch_plan import INT_MAX, FetchAuthorizer, FetchParams
from tailrace.fetch.isolation import is_follower
from tailrace.fetch.read import PartitionReader
from tailrace.fetch.request_context import context_of
from tailrace.fetch.sessions import FetchSessions
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.steps import Steps, run_steps
from tailrace.protocol.flat.fetch import FetchAsk
from tailrace.waiting.purgatory import Purgatory

DEFAULT_MAX_BYTES = 57_671_680  # fetch.max.bytes


class Fetches:
    def __init__(
        self,
        reader: PartitionReader,
        sessions: FetchSessions,
        purgatory: Purgatory,
        image: Callable[[], MetadataImage],
        *,
        authorizer: FetchAuthorizer | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        """`image` returns the current metadata. If `authorizer` is None, every client may fetch every topic."""
        self.services = FetchServices(reader, purgatory, image, authorizer)
        self.reader = reader
        self.sessions = sessions
        self.max_bytes = max_bytes

    def with_authorizer(self, authorizer: FetchAuthorizer | None) -> Fetches:
        """Return the same fetches, with the same sessions, and another authorizer."""
        known = self.services
        return Fetches(
            known.reader, self.sessions, known.purgatory, known.image, authorizer=authorizer, max_bytes=self.max_bytes
        )

    def start(
        self,
        ask: FetchAsk,
        version: int,
        now_ms: int,
        answer: OnReady,
        **options: Any,
    ) -> Fetch:
        """Like `begin`, without pauses."""
        return run_steps(self.begin(ask, version, now_ms, answer, **options), now_ms)

    def begin(
        self,
        ask: FetchAsk,
        version: int,
        now_ms: int,
        answer: OnReady,
        *,
        client: object = None,
        listener: str = "PLAINTEXT",
        quota_bytes: int = INT_MAX,
        later: Later | None = None,
    ) -> Steps[Fetch]:
        """Begin a fetch, with pauses for other requests. `answer(fetch, now_ms)` is called once, when it is ready, and
        may return steps. When a fetch of many partitions ends its wait, `later(steps, now_ms)` runs its second read and
        its answer between other requests. If `later` is None, both run at once.

        The authorizer receives `client`. The client may fetch `quota_bytes` without being throttled. A KafkaError
        concerns the whole request.
        """
        follower = is_follower(ask.replica_id)
        image = self.services.image()
        context = yield from context_of(ask, version, self.sessions, image, follower, now_ms)
        max_bytes = self.max_bytes
        if quota_bytes < max_bytes and not follower:
            max_bytes = quota_bytes
        params = FetchParams.of(ask, version, max_bytes)
        fetch = Fetch(self.services, context, params, version, listener, answer, now_ms, later)
        if not (yield from fetch.begin(client, ask.isolation_level, self.services.image(), now_ms)):
            operation = fetch.wait_for_remote(now_ms) or DelayedFetch(fetch, now_ms + params.max_wait_ms)
            fetch.park(operation, now_ms)
            self.services.purgatory.try_complete_or_watch(operation, fetch.keys(), now_ms)
        return fetch
