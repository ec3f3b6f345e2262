"""MetricsServer: the HTTP endpoint of a node with several shards, on a thread of its own.

It is the endpoint that a single broker has, with the metrics of all shards.
"""

from __future__ import annotations

import threading
from typing import Final

from tailrace.node.shards.shard_metrics import ShardMetrics
from tailrace.server.connections.listener import Listener
from tailrace.server.http.metrics_endpoint import MetricsEndpoint
from tailrace.server.loop.clock import wall_clock_ms
from tailrace.server.loop.poll import READABLE, open_poll
from tailrace.server.loop.wakeup import WakeUp
from tailrace.server.settings import ServerSettings

_POLL_S: Final = 1.0


class MetricsServer:
    def __init__(self, settings: ServerSettings, shards: ShardMetrics) -> None:
        """Bind the address. Raise OSError if that is impossible."""
        assert settings.metrics is not None
        self._listener = Listener(settings.metrics, settings)
        self._shards = shards
        self._poll = open_poll()
        self._wakeup = WakeUp()
        self._endpoint = MetricsEndpoint(self._listener, self._poll, shards.families, shards, wall_clock_ms)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="tailrace-metrics", daemon=True)

    @property
    def address(self) -> str:
        return self._listener.endpoint.address

    def start(self) -> None:
        self._poll.register(self._wakeup.descriptor, READABLE)
        self._endpoint.start()
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopping:
            for descriptor, _ in self._poll.poll(_POLL_S):
                self._endpoint.serve(descriptor, wall_clock_ms())
            self._endpoint.tick(wall_clock_ms())
        self._endpoint.close()
        self._poll.close()

    def stop(self) -> None:
        """Stop serving. A request to a shard that is under way ends within its timeout."""
        self._is_stopping = True
        if self._thread.is_alive():
            self._wakeup.set()
            self._thread.join(_POLL_S)
        self._shards.close()
