"""A killed broker loses its leadership at once, not when its session expires; with real controllers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.confluent import consume, produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kraft_broker import kraft_broker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SESSION_S = 300


def test_another_leader_is_elected_at_once_after_a_kill(kafka: KafkaInstallation, tmp_path: Path) -> None:
    sessions = {"broker.session.timeout.ms": str(SESSION_S * 1_000)}
    with (
        KafkaControllers(kafka, tmp_path, properties=sessions, is_formatted_here=True) as controllers,
        kraft_broker(controllers, tmp_path / "one", 1) as one,
        kraft_broker(controllers, tmp_path / "two", 2) as two,
    ):
        admin = AdminClient({"bootstrap.servers": two.bootstrap})
        admin.create_topics([NewTopic("t", 1, replica_assignment=[[1, 2]])])["t"].result(60)
        produce(two.bootstrap, "t", 0, [b"before"])

        def await_leader(leader: int, isr: list[int]) -> None:
            deadline = time.monotonic() + SESSION_S / 3
            while time.monotonic() < deadline:
                known = admin.list_topics("t", timeout=30).topics["t"].partitions[0]
                if known.leader == leader and sorted(known.isrs) == isr:
                    return
                time.sleep(0.05)
            raise AssertionError(f"{leader} does not lead with ISR {isr}: {known.leader}, {known.isrs}")

        await_leader(1, [1, 2])
        one.kill()
        await_leader(2, [2])
        produce(two.bootstrap, "t", 0, [b"after"])
        assert [record.value for record in consume(two.bootstrap, "t", 0)] == [b"before", b"after"]
