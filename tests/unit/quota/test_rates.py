"""Rates, buckets and throttle times, with numbers that are easy to check by hand."""

from __future__ import annotations

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.quota.connection_quota import ConnectionQuota
from tailrace.quota.mutation_quota import MutationQuotas
from tailrace.quota.rate import Rate, Windows
from tailrace.quota.rate_quota import INT_MAX, RateQuota

NOW_MS = 1_700_000_000_000
ALICE = (("user", "alice"),)
CLIENT = (("client-id", "c"),)


def quota(limit: float) -> RateQuota:
    made = RateQuota("producer_byte_rate", Windows())
    made.update({CLIENT: {"producer_byte_rate": limit}})
    return made


def test_a_new_rate_is_averaged_over_all_steps_but_one() -> None:
    rate = Rate(Windows(11, 1000), NOW_MS)
    rate.record(5000, NOW_MS)
    assert rate.observe(NOW_MS) == (500.0, 10_000)
    assert rate.observe(NOW_MS + 500) == pytest.approx((5000 / 10.5, 10_500))


def test_values_older_than_the_window_are_not_counted() -> None:
    rate = Rate(Windows(11, 1000), NOW_MS)
    rate.record(5000, NOW_MS)
    assert rate.observe(NOW_MS + 10_999).per_second > 0
    assert rate.observe(NOW_MS + 11_000).per_second == 0


def test_ten_seconds_of_quota_are_unthrottled_and_the_excess_is_throttled() -> None:
    produce = quota(1000)
    assert produce.record("u", "c", 10_000, NOW_MS) == 0
    assert produce.record("u", "c", 500, NOW_MS) == 500  # 1050/s of 1000/s over ten seconds
    assert produce.record("u", "c", 0, NOW_MS + 500) == 0


def test_a_client_that_waits_its_throttle_times_stays_at_its_limit() -> None:
    produce, now_ms, sent = quota(100_000), NOW_MS, 0
    while now_ms < NOW_MS + 60_000:
        sent += 30_000
        now_ms += 1 + produce.record("u", "c", 30_000, now_ms)
    assert sent / 60 == pytest.approx(100_000, rel=0.2)  # the quota of the first ten seconds was unthrottled


def test_usage_that_is_taken_back_is_not_counted() -> None:
    fetch = quota(1000)
    assert fetch.record("u", "c", 50_000, NOW_MS) == 40_000
    fetch.take_back("u", "c", 50_000, NOW_MS)
    assert fetch.record("u", "c", 10_000, NOW_MS) == 0


def test_a_throttle_time_is_capped() -> None:
    request = RateQuota("producer_byte_rate", Windows(), longest_ms=1000)
    request.update({CLIENT: {"producer_byte_rate": 1}})
    assert request.record("u", "c", 1_000_000, NOW_MS) == 1000
    assert quota(1e-9).record("u", "c", 1e9, NOW_MS) == INT_MAX


def test_a_request_of_the_largest_unthrottled_size_is_not_throttled() -> None:
    fetch = quota(1000)
    most = fetch.largest_unthrottled("u", "c")
    assert most == 10_000
    assert fetch.record("u", "c", most, NOW_MS) == 0
    assert fetch.largest_unthrottled("u", "unlimited") == INT_MAX
    assert quota(1e12).largest_unthrottled("u", "c") == INT_MAX


def test_only_clients_of_the_last_window_have_rates() -> None:
    produce = RateQuota("producer_byte_rate", Windows())
    produce.update({(("client-id", None),): {"producer_byte_rate": 1000.0}})
    for number in range(20_000):
        produce.record("u", f"client-{number}", 100, NOW_MS + 10 * number)
    assert len(produce) <= 2 * 1100 + 1


def test_strict_mutations_are_refused_while_the_bucket_is_below_zero() -> None:
    quotas = MutationQuotas(Windows(2, 1000))
    quotas.update({ALICE: {"controller_mutation_rate": 2}})
    first = quotas.of("alice", "c", NOW_MS, strict=True)
    first.charge(10)  # the bucket has four tokens
    assert first.throttle_ms == 0
    with pytest.raises(KafkaError) as refused:
        first.charge(1)
    assert (refused.value.code, first.throttle_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 3000)
    later = quotas.of("alice", "c", NOW_MS + 3000, strict=True)
    later.charge(1)


def test_permissive_mutations_are_carried_out_and_then_throttled() -> None:
    quotas = MutationQuotas(Windows(2, 1000))
    quotas.update({ALICE: {"controller_mutation_rate": 2}})
    quota = quotas.of("alice", "c", NOW_MS, strict=False)
    quota.charge(10)
    quota.charge(1)
    assert quota.throttle_ms == 3500
    assert quotas.of("bob", "c", NOW_MS, strict=False).throttle_ms == 0


def test_full_buckets_are_removed() -> None:
    quotas = MutationQuotas(Windows())
    quotas.update({(("user", None),): {"controller_mutation_rate": 10.0}})
    for number in range(5000):
        quotas.of(f"user-{number}", "", NOW_MS + 10 * number, strict=True).charge(1)
    assert len(quotas) <= 2 * 1100 + 1


def test_only_the_address_above_its_connection_rate_is_throttled() -> None:
    quota = ConnectionQuota(Windows(11, 1000))
    quota.update({(("ip", "10.0.0.1"),): {"connection_creation_rate": 2.0}})
    assert [quota.record("10.0.0.1", NOW_MS) for _ in range(22)] == [0] * 20 + [500, 500]
    assert quota.record("10.0.0.2", NOW_MS) == 0
    assert quota.record("10.0.0.1", NOW_MS + 500) == 0, "throttled connections are not counted"


@pytest.mark.parametrize("written", ["::1", "0:0:0:0:0:0:0:1", "::0001"])
def test_all_notations_of_an_address_share_one_quota(written: str) -> None:
    quota = ConnectionQuota(Windows(2, 1000))
    quota.update({(("ip", written),): {"connection_creation_rate": 1.0}})
    assert [quota.record("::1", NOW_MS) for _ in range(2)] == [0, 1000]


def test_a_quota_for_a_host_name_limits_no_address() -> None:
    quota = ConnectionQuota(Windows(2, 1000))
    quota.update({(("ip", "localhost"),): {"connection_creation_rate": 1.0}})
    assert [quota.record("127.0.0.1", NOW_MS) for _ in range(3)] == [0, 0, 0]


def test_the_default_connection_quota_applies_to_each_address_separately() -> None:
    quota = ConnectionQuota(Windows(11, 1000))
    quota.update({(("ip", None),): {"connection_creation_rate": 1.0}, (("ip", "10.0.0.1"),): {}})
    for host in ("10.0.0.1", "10.0.0.2"):
        assert [quota.record(host, NOW_MS) for _ in range(11)] == [0] * 10 + [1000]
    for number in range(20_000):
        quota.record(f"10.1.{number // 250}.{number % 250}", NOW_MS + 10 * number)
    assert len(quota) <= 2 * 1100 + 1


def test_a_removed_notation_of_an_address_leaves_the_limit_of_another() -> None:
    quota = ConnectionQuota(Windows(2, 1000))
    quota.update({(("ip", "::1"),): {"connection_creation_rate": 1.0}, (("ip", "::0001"),): {}})
    quota.update({(("ip", "::0001"),): {"connection_creation_rate": 5.0}})
    quota.update({(("ip", "::0001"),): {}})
    assert [quota.record("::1", NOW_MS) for _ in range(2)] == [0, 1000]
    quota.update({(("ip", "::1"),): {}})
    assert not quota.is_enabled
