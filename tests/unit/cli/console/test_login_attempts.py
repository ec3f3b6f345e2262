"""Failed logins of an address are limited; other addresses and successful logins are not."""

from __future__ import annotations

import pytest

from tailrace.cli.console import login_attempts
from tailrace.cli.console.login_attempts import FAILURES_MAX, WINDOW_S, LoginAttempts


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_an_address_with_too_many_failures_waits_and_others_do_not() -> None:
    clock = Clock()
    attempts = LoginAttempts(clock)
    for _ in range(FAILURES_MAX):
        assert attempts.begin("10.0.0.1") == 0
        clock.now_s += 1
    assert attempts.begin("10.0.0.1") == WINDOW_S - FAILURES_MAX
    assert attempts.begin("10.0.0.2") == 0
    clock.now_s += WINDOW_S - FAILURES_MAX
    assert attempts.begin("10.0.0.1") == 0, "the first failure is old"
    assert attempts.begin("10.0.0.1") == 1


def test_a_successful_login_does_not_count() -> None:
    attempts = LoginAttempts(Clock())
    for _ in range(3 * FAILURES_MAX):
        assert attempts.begin("10.0.0.1") == 0
        attempts.succeeded("10.0.0.1")


def test_addresses_of_one_ipv6_network_count_together() -> None:
    attempts = LoginAttempts(Clock())
    for number in range(FAILURES_MAX):
        assert attempts.begin(f"2001:db8::{number + 1:x}") == 0
    assert attempts.begin("2001:db8::ffff") > 0
    assert attempts.begin("2001:db8:0:1::1") == 0


def test_the_number_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_attempts, "ADDRESSES_MAX", 100)
    attempts = LoginAttempts(Clock())
    for number in range(1_000):
        attempts.begin(f"10.0.{number // 250}.{number % 250}")
    assert len(attempts._begun) == 100
