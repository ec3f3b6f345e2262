"""The broker's deadline: asked for once in a millisecond while events come, and after every tick."""

from __future__ import annotations

from tailrace.server.loop.broker_deadline import DAY_MS, BrokerDeadline
from tests.unit.server.fake_broker import FakeBroker


class _Broker(FakeBroker):
    def __init__(self) -> None:
        super().__init__()
        self.due_ms: int | None = None
        self.asked = 0
        self.ticked: list[int] = []

    def next_deadline_ms(self) -> int | None:
        self.asked += 1
        return self.due_ms

    def tick(self, now_ms: int) -> None:
        self.ticked.append(now_ms)


def test_a_busy_loop_queries_the_deadline_once_per_millisecond() -> None:
    broker = _Broker()
    deadline = BrokerDeadline(broker, lambda: 1_000)
    assert [deadline.wait_ms(1_000, True) for _ in range(3)] == [DAY_MS, 1, 1]
    assert broker.asked == 1
    assert deadline.wait_ms(1_001, True) == DAY_MS
    assert broker.asked == 2


def test_a_pass_without_events_queries_the_deadline_again() -> None:
    broker = _Broker()
    deadline = BrokerDeadline(broker, lambda: 1_000)
    deadline.wait_ms(1_000, True)
    broker.due_ms = 1_005
    assert deadline.wait_ms(1_000, False) == 5


def test_a_tick_runs_at_the_deadline_and_the_next_pass_queries_it_again() -> None:
    broker = _Broker()
    broker.due_ms = 1_002
    deadline = BrokerDeadline(broker, lambda: 1_001)
    assert deadline.wait_ms(1_001, True) == 1
    deadline.tick_if_due(1_001)
    assert broker.ticked == []
    deadline.tick_if_due(1_002)
    assert broker.ticked == [1_002]
    broker.due_ms = None
    assert deadline.wait_ms(1_001, True) == DAY_MS
    deadline.tick_if_due(1_003)
    assert broker.ticked == [1_002]
