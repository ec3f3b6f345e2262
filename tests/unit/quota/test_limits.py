"""QuotaLimits: the limit that applies to a client, in Kafka's order of precedence."""

from __future__ import annotations

from itertools import combinations

import pytest

from tailrace.quota.limits import Entity, QuotaLimits

QUOTA = "producer_byte_rate"
# From the most specific limit to the least specific, each with its owner.
LEVELS: list[tuple[Entity, tuple[str, str]]] = [
    ((("client-id", "c"), ("user", "u")), ("u", "c")),
    ((("client-id", None), ("user", "u")), ("u", "c")),
    ((("user", "u"),), ("u", "")),
    ((("client-id", "c"), ("user", None)), ("u", "c")),
    ((("client-id", None), ("user", None)), ("u", "c")),
    ((("user", None),), ("u", "")),
    ((("client-id", "c"),), ("", "c")),
    ((("client-id", None),), ("", "c")),
]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_most_specific_limit_wins(count: int) -> None:
    for chosen in combinations(range(len(LEVELS)), count):
        limits = QuotaLimits(QUOTA)
        limits.update({LEVELS[level][0]: {QUOTA: 100.0 + level} for level in chosen})
        owner = limits.owner("u", "c")
        assert (owner, limits.limit(owner)) == (LEVELS[min(chosen)][1], 100.0 + min(chosen))


def test_quotas_of_other_clients_and_other_kinds_do_not_apply() -> None:
    limits = QuotaLimits(QUOTA)
    limits.update(
        {
            (("client-id", "other"), ("user", "u")): {QUOTA: 1.0},
            (("user", "u"),): {"consumer_byte_rate": 1.0},
            (("ip", "127.0.0.1"),): {"connection_creation_rate": 1.0},
        }
    )
    assert limits.is_enabled
    assert limits.limit(limits.owner("u", "c")) is None


def test_a_removed_quota_no_longer_applies() -> None:
    limits = QuotaLimits(QUOTA)
    limits.update({LEVELS[2][0]: {QUOTA: 1.0}})
    limits.update({LEVELS[2][0]: {}})
    assert not limits.is_enabled
    assert limits.limit(limits.owner("u", "c")) is None


def test_an_update_of_one_entity_leaves_the_limits_of_others() -> None:
    limits = QuotaLimits(QUOTA)
    limits.update({LEVELS[2][0]: {QUOTA: 1.0}, LEVELS[6][0]: {QUOTA: 2.0}})
    limits.update({LEVELS[2][0]: {}})
    assert limits.limit(limits.owner("u", "c")) == 2.0
