from __future__ import annotations

from tailrace.client.network.patience import Patience
from tailrace.client.settings import ClientSettings
from tests.unit.client.fakes import FakeClock


def test_pauses_double_up_to_a_limit_and_end_with_the_budget() -> None:
    clock = FakeClock()
    settings = ClientSettings(total_timeout_ms=1000, backoff_ms=50, backoff_max_ms=300)
    patience = Patience(settings, clock, spread=lambda low, high: 1.0)
    while patience.pause():
        pass
    assert [round(pause, 6) for pause in clock.pauses] == [0.05, 0.1, 0.2, 0.3, 0.3, 0.05]
    assert patience.remaining_s == 0


def test_pauses_are_spread_by_a_fifth() -> None:
    clock = FakeClock()
    asked = []
    patience = Patience(ClientSettings(), clock, spread=lambda low, high: asked.append((low, high)) or high)  # type: ignore[func-returns-value]
    patience.pause()
    assert asked == [(0.8, 1.2)]
    assert clock.pauses == [0.05 * 1.2]


def test_a_budget_of_its_own() -> None:
    clock = FakeClock()
    patience = Patience(ClientSettings(), clock, budget_ms=0)
    assert not patience.pause()
    assert clock.pauses == []
