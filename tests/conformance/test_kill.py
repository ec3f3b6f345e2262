"""`kill -9` under load, repeatedly: acknowledged records are in the log, and no record is there twice.

A librdkafka producer writes numbered values to two partitions without a pause, across all restarts, and notes the
offset of each acknowledged value. At the end each partition holds every acknowledged value at its offset, in order,
without duplicates or gaps. A value whose delivery failed may be there or not; the producer never gives up.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.confluent import TIMEOUT_S, consume, create_topic
from tests.support.tailrace_process import TailraceProcess

TOPIC = "load"
PARTITIONS = 2


class Load:
    """A thread that sends the values 0, 1, 2, … to each partition until `finish`."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]  # number → offset
        self.failures: list[str] = []
        self.sent = 0
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "message.timeout.ms": 0,  # never gives up
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 10,
                "log_level": 0,
                "error_cb": self._note_fatal,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _note_fatal(self, error: Any) -> None:
        if error.fatal():
            self.failures.append(str(error))

    def _run(self) -> None:
        while not self._stop.is_set():
            if len(self._producer) > 2_000:
                self._producer.poll(0.01)
                continue
            for partition in range(PARTITIONS):
                self._producer.produce(TOPIC, str(self.sent).encode(), partition=partition, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0.0005)

    def _delivered(self, error: Any, message: Any) -> None:
        if error:
            self.failures.append(str(error))
        else:
            self.acknowledged[message.partition()][int(message.value())] = message.offset()

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged))

    def wait_for(self, more: int) -> None:
        """Wait until `count` more values are acknowledged."""
        goal, deadline = self.total + more, time.monotonic() + TIMEOUT_S
        while self.total < goal:
            assert not self.failures, self.failures[:3]
            assert time.monotonic() < deadline, f"{self.total} acknowledged, no {goal}"
            time.sleep(0.002)

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(TIMEOUT_S) == 0
        assert self.failures == []


def check(bootstrap: str, load: Load) -> None:
    for partition, acknowledged in enumerate(load.acknowledged):
        got = consume(bootstrap, TOPIC, partition)
        assert [record.offset for record in got] == list(range(len(got)))
        assert [int(record.value or b"") for record in got] == list(range(load.sent))
        assert acknowledged == {number: number for number in range(load.sent)}


def kill_under_load(data: Path, rounds: int) -> None:
    moments = random.Random(4)
    broker = TailraceProcess(data, "-o", "log.segment.bytes=1048576")
    with broker:
        create_topic(broker.bootstrap, TOPIC, PARTITIONS)
        load = Load(broker.bootstrap)
        for _ in range(rounds):
            load.wait_for(moments.randrange(1, 1_500))
            broker.kill()
            broker.start()
        load.wait_for(500)
        load.finish()
        check(broker.bootstrap, load)
        assert broker.stop() == 0
        broker.start()
        check(broker.bootstrap, load)
    assert "ERROR" not in broker.errors


def test_no_acknowledged_record_is_lost_or_duplicated_when_the_broker_is_killed(tmp_path: Path) -> None:
    kill_under_load(tmp_path / "data", 5)


@pytest.mark.slow
def test_no_acknowledged_record_is_lost_or_duplicated_in_two_hundred_kills(tmp_path: Path) -> None:
    kill_under_load(tmp_path / "data", 200)
