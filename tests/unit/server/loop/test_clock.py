"""Time that never runs backwards."""

from __future__ import annotations

from tailrace.server.loop.clock import SteadyClock, monotonic_ms, wall_clock_ms


class Hands:
    def __init__(self, wall_ms: int) -> None:
        self.wall_ms = wall_ms
        self.timer_ms = 0
        self.clock = SteadyClock(lambda: self.wall_ms, lambda: self.timer_ms)

    def pass_by(self, milliseconds: int) -> int:
        self.wall_ms += milliseconds
        self.timer_ms += milliseconds
        return self.clock()


def test_a_steady_clock_follows_a_wall_clock_that_moves_forward() -> None:
    hands = Hands(1_000_000)
    assert hands.clock() == 1_000_000
    assert hands.pass_by(5) == 1_000_005
    hands.wall_ms += 3_600_000
    assert hands.clock() == 4_600_005


def test_after_the_wall_clock_is_set_back_a_steady_clock_runs_at_half_speed_until_both_agree() -> None:
    hands = Hands(1_000_000)
    hands.wall_ms -= 1000
    assert hands.clock() == 1_000_000
    assert hands.pass_by(500) == 1_000_250
    assert hands.pass_by(1499) == 1_000_999
    assert hands.pass_by(1) == 1_001_000 == hands.wall_ms
    assert hands.pass_by(7) == 1_001_007


def test_frequent_reads_do_not_stop_a_steady_clock() -> None:
    hands = Hands(1_000_000)
    hands.wall_ms -= 1000
    seen = [hands.pass_by(1) for _ in range(3000)]
    assert seen == sorted(seen)
    assert seen[999] == 1_000_499
    assert seen[-1] == hands.wall_ms


def test_a_wall_clock_set_back_twice_is_caught_up() -> None:
    hands = Hands(1_000_000)
    hands.wall_ms -= 1000
    hands.pass_by(100)
    hands.wall_ms -= 500
    before = hands.clock()
    assert hands.pass_by(100) == before + 50


def test_the_real_clocks_return_milliseconds() -> None:
    assert wall_clock_ms() > 1_600_000_000_000
    assert monotonic_ms() <= monotonic_ms()
