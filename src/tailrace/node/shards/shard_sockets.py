"""ShardSockets: sockets that the parent binds before the shards start, and keeps while they are restarted.

These are the listeners between the shards, the shards' metrics, and the clients' listeners on port 0, whose ports stay
the same over restarts. The controller's socket listens from the beginning: shards that start sooner wait in its
backlog. Clients of a shard that has not started yet are refused.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from tailrace.model.listener_settings import SHARDS_LISTENER
from tailrace.node.shards.shard_settings import CONTROLLER, LOOPBACK, client_listeners
from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.connections.listener import bind
from tailrace.server.settings import METRICS


class ShardSockets:
    def __init__(self, properties: Mapping[str, str], count: int, *, has_metrics: bool) -> None:
        self._of: list[dict[str, socket.socket]] = []
        for number in range(1, count + 1):
            wanted = [Endpoint(SHARDS_LISTENER, LOOPBACK, 0)]
            if number == 1:
                wanted.append(Endpoint(CONTROLLER, LOOPBACK, 0))
            if has_metrics:
                wanted.append(Endpoint(METRICS, LOOPBACK, 0))
            wanted += [one for one in client_listeners(properties, "listeners", number) if one.port == 0]
            self._of.append({one.name: bind(one) for one in wanted})
        self._of[0][CONTROLLER].listen()

    @property
    def controller_port(self) -> int:
        return self.port(1, CONTROLLER)

    def port(self, number: int, name: str) -> int:
        return int(self._of[number - 1][name].getsockname()[1])

    def of(self, number: int) -> dict[str, tuple[int, int]]:
        """Return port and descriptor of each socket of a shard, by the name of the listener."""
        return {name: (self.port(number, name), one.fileno()) for name, one in self._of[number - 1].items()}

    def close(self) -> None:
        for sockets in self._of:
            for one in sockets.values():
                one.close()
