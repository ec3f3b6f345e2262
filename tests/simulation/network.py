"""Network: virtual time, and messages between hosts that may be late, lost, cut off, stopped or dead; by one seed.

Whatever happens is an event at a host: while that is stopped (SIGSTOP) its events wait, in their order, and once it is
dead they never happen. A request is answered or fails, once; one that failed may have been served all the same, and
one that waited at a stopped host is served when nobody expects it any more. What one life of a host sends can be held
back, and arrives whenever it is let go: after the host is dead, or after what its next life has sent.
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
    """Something that runs: from its start until it is dead. What is started again is another host of the same id."""

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
        self._cut: set[tuple[int, int]] = set()  # (from, to): nothing gets through
        self._held: dict[tuple[Host, int], list[tuple[Host, Action]]] = {}  # (from, to): what waits to be let go
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
        """Keep back what this life of a host sends to another from now on."""
        self._held.setdefault((sender, receiver_id), [])

    def held(self, sender: Host, receiver_id: int) -> int:
        return len(self._held.get((sender, receiver_id), ()))

    def let_go(self, sender: Host, receiver_id: int) -> None:
        """What was kept back arrives, in its order; nothing more is held."""
        for receiver, arrive in self._held.pop((sender, receiver_id), ()):
            self.after(0, receiver, arrive)

    def let_all_go(self) -> None:
        for sender, receiver_id in list(self._held):
            self.let_go(sender, receiver_id)

    def is_cut(self, one: Host, other: Host) -> bool:
        """Whether a message or its answer would be lost between two hosts."""
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
        """`serve(answer)` at the server; then, at the client, `answered(what was given to answer)` or `failed()`."""
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
        if not server.is_alive:  # and its machine says so
            self.after(self.random.choice(self.delays_ms), client, give_up)

    def _send(self, sender: Host, receiver: Host, arrive: Action) -> None:
        if self.random.random() < self.loss or (sender.host_id, receiver.host_id) in self._cut:
            return
        held = self._held.get((sender, receiver.host_id))
        if held is not None:
            held.append((receiver, arrive))
        else:
            self.after(self.random.choice(self.delays_ms), receiver, arrive)
