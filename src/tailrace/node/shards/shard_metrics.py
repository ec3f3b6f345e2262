"""ShardMetrics: metrics, health and waiting requests of all shards, each read from the shard's own endpoint.

Samples of a shard get the label `shard`. So Prometheus can sum them, and one shard can still be seen alone. Requests to
shards block, so this is not for the loop of the parent.
"""

from __future__ import annotations

import json
import logging
import urllib.parse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tailrace.client.security.http_exchange import Answer, exchange
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.metrics.exposition import OPENMETRICS
from tailrace.metrics.families import Family, Kind, Sample, gauge
from tailrace.metrics.merged import merged
from tailrace.metrics.scrape import MalformedMetrics
from tailrace.node.shards.shard_settings import LOOPBACK
from tailrace.node.shards.supervisor import Supervisor

_TIMEOUT_S: Final = 5.0
_EXPLAIN_TIMEOUT_S: Final = 65.0  # a fetch may wait for a minute
_PAGE_BYTES_MAX: Final = 134_217_728
_THREADS_MAX: Final = 16
_NOT_HERE: Final = ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION")
_SUMMED: Final = ("waiting", "watchedKeys", "completed", "expired", "sessionCount", "sharePartitionCount")
_LISTED: Final = ("operations", "sessions", "sharePartitions")
_log = logging.getLogger("tailrace.shards")


class ShardMetrics:
    def __init__(self, ports: Mapping[int, int], supervisor: Supervisor) -> None:
        """`ports` has the port of the metrics of each shard."""
        self._ports = ports
        self._supervisor = supervisor
        self._threads = ThreadPoolExecutor(min(len(ports), _THREADS_MAX), "tailrace-shard-metrics")
        self.internal_errors = InternalErrors(_log)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def families(self) -> list[Family]:
        found = self._ask("/metrics", self._ready(), _TIMEOUT_S, {"Accept": OPENMETRICS})
        pages = {str(number): answer.body.decode() for number, answer in found.items() if answer.status == 200}
        supervisor = self._supervisor
        own = [
            gauge("tailrace_shards", "Shards of this node.", len(self._ports)),
            Family(
                "tailrace_shard_ready",
                Kind.GAUGE,
                "1 if clients can connect to the shard.",
                [Sample({"shard": str(number)}, int(is_ready)) for number, is_ready in supervisor.ready_shards.items()],
            ),
            Family(
                "tailrace_shard_restarts",
                Kind.COUNTER,
                "Restarts of a shard whose process has ended.",
                [Sample({"shard": str(number)}, count) for number, count in supervisor.restarts.items()],
            ),
        ]
        try:
            return [*own, *merged(pages, "shard")]
        except MalformedMetrics as error:
            _log.error("the metrics of the shards cannot be merged: %s", error)
            return own

    def not_ready_reason(self) -> str | None:
        reason = self._supervisor.not_ready_reason()
        if reason is not None:
            return reason
        found = self._ask("/readyz", self._ports, _TIMEOUT_S)
        for number in self._ports:
            if number not in found:
                return f"shard {number} does not respond"
            if found[number].status != 200:
                return f"shard {number}: {found[number].body.decode(errors='replace').strip()}"
        return None

    def describe_waiting(self, now_ms: int) -> dict[str, Any]:
        found = self._ask("/waiting", self._ready(), _TIMEOUT_S)
        states = {number: json.loads(answer.body) for number, answer in found.items() if answer.status == 200}
        whole: dict[str, Any] = {"time": now_ms}
        for name in _SUMMED:
            whole[name] = sum(state[name] for state in states.values())
        for name in _LISTED:
            whole[name] = [{**one, "shard": number} for number, state in states.items() for one in state[name]]
        return whole

    def explain_fetch(self, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        """Explain a fetch at the shard that leads the partition."""
        path = f"/explain/fetch?{urllib.parse.urlencode(query)}"
        chosen: Answer | None = None
        for number in self._ready():
            found = self._ask(path, {number: self._ports[number]}, _EXPLAIN_TIMEOUT_S)
            if number in found:
                chosen = found[number]
                if not any(name.encode() in chosen.body for name in _NOT_HERE):
                    break
        if chosen is None:
            raise ValueError("no shard responds")
        document = json.loads(chosen.body)
        if chosen.status != 200:
            raise ValueError(document.get("error", f"HTTP status {chosen.status}"))
        answer(document)

    def _ready(self) -> dict[int, int]:
        return {number: self._ports[number] for number, is_ready in self._supervisor.ready_shards.items() if is_ready}

    def _ask(
        self, path: str, ports: Mapping[int, int], timeout_s: float, headers: Mapping[str, str] | None = None
    ) -> dict[int, Answer]:
        """Return the responses of shards. A shard without one is left out."""

        def ask(port: int) -> Answer | None:
            try:
                return exchange(
                    f"http://{LOOPBACK}:{port}{path}",
                    headers=headers,
                    connect_timeout_s=_TIMEOUT_S,
                    timeout_s=timeout_s,
                    bytes_max=_PAGE_BYTES_MAX,
                )
            except OSError:
                return None

        found = zip(ports, self._threads.map(ask, ports.values()), strict=True)
        return {number: answer for number, answer in found if answer is not None}
