"""Network: virtual time, and messages between hosts that may be late, lost, cut off, stopped or dead; driven by one
seed.

Every action is an event at a host. While the host is stopped (SIGSTOP) its events wait in order; once it is dead they
never happen. A request gets a response or fails, exactly once. A failed request may have been served all the same, and
a request that waited at a stopped host is served long after its client timed out. The messages of one process can be
held back and released at any time: after the process is dead, or after messages of the next process on that host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

Action = Callable[[], None]
DELAYS_MS = (1,) * 20 + (2,) * 10 + (5,) * 10 + (30,) * 9 + (500,)


class Host:
    """One process from its start to its end. A restarted process is another `Host` with the same id."""

    def __init__(self, host_id: int) -> None:
        self.host_id = host_id
        self.is_alive = True
        self.stopped_until_ms = 0


class Network:
    def __init__(self, random: Random, *, loss: float = 0.03, delays_ms: Sequence[int] = DELAYS_MS) -> None:
        self.random = random
        self.now_ms = 1_700_000_000_000
        self.loss = loss
        self.delays_ms = delays_ms
        self._cut: set[tuple[int, int]] = set()  # (from, to) pairs whose messages are lost
        # (from, to) → messages that wait to be released
        self._held: dict[tuple[Host, int], list[tuple[Host, Action]]] = {}
        self._events: list[tuple[int, int, Host, Action]] = []
        self._numbers = count()

    # Time

    def after(self, ms: int, host: Host, action: Action) -> None:
        heappush(self._events, (self.now_ms + ms, next(self._numbers), host, action))

    def run(self, ms: int, each_step: Callable[[Host], None]) -> None:
        events = self._events
        end = self.now_ms + ms
        while events and events[0][0] <= end:
            self.now_ms, number, host, action = heappop(events)
            if not host.is_alive:
                continue
            if host.stopped_until_ms > self.now_ms:
                heappush(events, (host.stopped_until_ms, number, host, action))
                continue
            action()
            each_step(host)
        self.now_ms = end

    # Links

    def cut(self, sender: int, receiver: int) -> None:
        self._cut.add((sender, receiver))

    def mend(self) -> None:
        self._cut.clear()

    def hold(self, sender: Host, receiver_id: int) -> None:
        """Hold back the messages of this process to another host from now on."""
        self._held.setdefault((sender, receiver_id), [])

    def held(self, sender: Host, receiver_id: int) -> int:
        return len(self._held.get((sender, receiver_id), ()))

    def release(self, sender: Host, receiver_id: int) -> None:
        """Deliver the held messages in their order, and hold no more than those."""
        for receiver, arrive in self._held.pop((sender, receiver_id), ()):
            self.after(0, receiver, arrive)

    def release_all(self) -> None:
        for sender, receiver_id in list(self._held):
            self.release(sender, receiver_id)

    def is_cut(self, one: Host, other: Host) -> bool:
        """Return True if a message or its response would be lost between two hosts."""
        return (one.host_id, other.host_id) in self._cut or (other.host_id, one.host_id) in self._cut

    def request(
        self,
        client: Host,
        server: Host,
        serve: Callable[[Callable[[Any], None]], None],
        answered: Callable[[Any], None],
        failed: Action,
        timeout_ms: int,
    ) -> None:
        """Run `serve(answer)` at the server; then, at the client, run `answered(value)` with the value given to
        `answer`, or `failed()`.
        """
        is_over = False

        def take(response: Any) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                answered(response)

        def give_up() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                failed()

        def answer(response: Any) -> None:
            self._send(server, client, lambda: take(response))

        self._send(client, server, lambda: serve(answer))
        self.after(timeout_ms, client, give_up)
        if not server.is_alive:  # the connection is refused
            self.after(self.random.choice(self.delays_ms), client, give_up)

    def _send(self, sender: Host, receiver: Host, arrive: Action) -> None:
        if self.random.random() < self.loss or (sender.host_id, receiver.host_id) in self._cut:
            return
        held = self._held.get((sender, receiver.host_id))
        if held is not None:
            held.append((receiver, arrive))
        else:
            self.after(self.random.choice(self.delays_ms), receiver, arrive)
