"""Limits of the number and the rate of connections."""

from __future__ import annotations

from tailrace.server.connections.connection_limits import ConnectionLimits
from tailrace.server.settings import LimitSettings


def test_without_limits_every_connection_is_admitted() -> None:
    limits = ConnectionLimits(LimitSettings())
    for _ in range(5000):
        assert limits.has_slot("A")
        assert limits.wait_ms("A", 0) == 0
        assert limits.admit("A", "10.0.0.1", 0)


def test_a_slot_is_free_again_when_a_connection_is_closed() -> None:
    limits = ConnectionLimits(LimitSettings(connections_max=2))
    assert limits.admit("A", "h", 0)
    assert limits.admit("B", "h", 0)
    assert not limits.has_slot("A")
    limits.leave("B", "h")
    assert limits.has_slot("A")


def test_a_listener_has_its_own_maximum() -> None:
    limits = ConnectionLimits(LimitSettings(listener_connections_max={"A": 1}))
    assert limits.admit("A", "h", 0)
    assert not limits.has_slot("A")
    assert limits.has_slot("B")


def test_an_address_has_its_own_maximum_which_an_override_changes() -> None:
    limits = ConnectionLimits(LimitSettings(connections_per_ip_max=1, per_ip_overrides={"b": 2, "c": 0}))
    assert [limits.admit("A", host, 0) for host in "aabbbc"] == [True, False, True, True, False, False]
    limits.leave("A", "a")
    assert limits.admit("A", "a", 0)


def test_a_rate_allows_ten_seconds_worth_at_once_and_then_one_by_one() -> None:
    limits = ConnectionLimits(LimitSettings(creation_rate_max=2))
    for _ in range(20):
        assert limits.wait_ms("A", 1_000) == 0
        limits.admit("A", "h", 1_000)
    wait_ms = limits.wait_ms("A", 1_000)
    assert 500 <= wait_ms <= 501
    assert limits.wait_ms("A", 1_000 + wait_ms - 2) > 0
    assert limits.wait_ms("A", 1_000 + wait_ms) == 0


def test_a_listener_has_its_own_rate() -> None:
    limits = ConnectionLimits(LimitSettings(listener_creation_rate_max={"A": 1}))
    for _ in range(10):
        limits.admit("A", "h", 0)
    assert limits.wait_ms("A", 0) > 0
    assert limits.wait_ms("B", 0) == 0


def test_a_rate_of_0_admits_no_connection_and_is_checked_again_later() -> None:
    limits = ConnectionLimits(LimitSettings(creation_rate_max=0))
    assert limits.wait_ms("A", 0) == 10_000
    assert limits.wait_ms("A", 10_000) == 10_000


def test_a_rate_works_with_a_clock_that_does_not_advance() -> None:
    limits = ConnectionLimits(LimitSettings(creation_rate_max=1))
    for _ in range(15):
        limits.admit("A", "h", 0)
    assert limits.wait_ms("A", 0) > 5_000


def test_changed_limits_apply_to_new_connections() -> None:
    limits = ConnectionLimits(LimitSettings())
    assert limits.admit("A", "h", 0)
    assert limits.admit("A", "h", 0)
    limits.change(LimitSettings(connections_max=1))
    assert not limits.has_slot("A")
    limits.leave("A", "h")
    assert not limits.has_slot("A")
    limits.leave("A", "h")
    assert limits.has_slot("A")
