"""SteadyLoad: a producer in its own thread, which sends while a test stops or moves brokers."""

from __future__ import annotations

import threading
from typing import Any, Self

from confluent_kafka import Producer

from tests.support.replicated_cluster import PATIENCE_S, eventually

IDEMPOTENT = {"enable.idempotence": True, "message.timeout.ms": 120_000}
ONCE = {"acks": "all", "retries": 0, "linger.ms": 0}  # no retries, so that a refused request is reported at once


class SteadyLoad:
    """Sends 0, 1, 2, … to a topic's first partition within a `with` block. `acknowledged` has the values by offset."""

    def __init__(self, bootstrap: str, topic: str, settings: dict[str, Any], pause_s: float = 0.002) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.refused: list[str] = []
        self._topic = topic
        self._pause_s = pause_s
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings})
        self._is_ending = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending = True
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0

    def await_more(self, count: int = 50) -> None:
        wanted = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= wanted, "more is acknowledged")

    def _run(self) -> None:
        number = 0
        while not self._is_ending:
            self._producer.produce(self._topic, b"%d" % number, partition=0, on_delivery=self._delivered)
            number += 1
            self._producer.poll(self._pause_s)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(error.name())
        else:
            self.acknowledged[message.offset()] = message.value()
