from __future__ import annotations

from tailrace.client.network.retry_budget import RetryBudget
from tailrace.client.settings import ClientSettings
from tests.unit.client.fakes import FakeClock


def test_pauses_double_up_to_the_limit_until_the_budget_ends() -> None:
    clock = FakeClock()
    settings = ClientSettings(total_timeout_ms=1000, backoff_ms=50, backoff_max_ms=300)
    retry_budget = RetryBudget(settings, clock, spread=lambda low, high: 1.0)
    while retry_budget.pause():
        pass
    assert [round(pause, 6) for pause in clock.pauses] == [0.05, 0.1, 0.2, 0.3, 0.3, 0.05]
    assert retry_budget.remaining_s == 0


def test_pauses_have_a_jitter_of_20_percent() -> None:
    clock = FakeClock()
    asked = []
    retry_budget = RetryBudget(ClientSettings(), clock, spread=lambda low, high: asked.append((low, high)) or high)  # type: ignore[func-returns-value]
    retry_budget.pause()
    assert asked == [(0.8, 1.2)]
    assert clock.pauses == [0.05 * 1.2]


def test_a_retry_budget_can_be_given() -> None:
    clock = FakeClock()
    retry_budget = RetryBudget(ClientSettings(), clock, budget_ms=0)
    assert not retry_budget.pause()
    assert clock.pauses == []
