"""Quotas as Kafka's own managers compute them: the same limits, the same use, the same pauses to the millisecond."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.quota.limits import Entity
from tailrace.quota.mutation_quota import MutationQuota, MutationQuotas
from tailrace.quota.rate import Windows
from tailrace.quota.rate_quota import RateQuota
from tailrace.quota.replication_quota import ReplicationQuota
from tests.support.log_oracle import START_MS, LogOracle

pytestmark = pytest.mark.kafka

compare = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

USERS, CLIENTS = ("alice", "bob"), ("", "a", "b")
# Small windows make samples overlap, expire and wrap around within a few steps.
windows = st.sampled_from([(11, 1), (2, 1), (3, 1), (2, 7), (1, 1)])
delays_ms = st.sampled_from([0, 0, 1, 3, 250, 999, 1000, 1001, 2500, 10_999, 11_000, 12_000, 40_000])
names = st.tuples(
    st.sampled_from([None, "<default>", *USERS]), st.sampled_from([None, "<default>", *CLIENTS[1:]])
).filter(lambda pair: pair != (None, None))
who = st.tuples(st.sampled_from(USERS), st.sampled_from(CLIENTS))


def entity_of(user: str | None, client_id: str | None) -> Entity:
    parts = [("client-id", client_id), ("user", user)]
    return tuple((kind, None if name == "<default>" else name) for kind, name in parts if name is not None)


class Twin:
    """One quota, with Kafka and with us."""

    def __init__(self, oracle: LogOracle, kind: str, ours: Any, manager: int) -> None:
        self.oracle = oracle
        self.kind = kind
        self.ours = ours
        self.manager = manager
        self.now_ms = START_MS

    def wait(self, delay_ms: int) -> None:
        self.now_ms += delay_ms
        self.oracle.now_ms = self.now_ms

    def set(self, user: str | None, client_id: str | None, limit: float | None) -> None:
        self.call("quota_set", user=user, client_id=client_id, limit=limit)
        limits = {} if limit is None else {self.kind: limit}
        self.ours.update({entity_of(user, client_id): limits})

    def call(self, op: str, **arguments: Any) -> Any:
        return self.oracle.call(op, manager=self.manager, **arguments)


@contextmanager
def twin(oracle: LogOracle, kind: str, ours: Any, window: tuple[int, int]) -> Iterator[Twin]:
    oracle.reset()
    made = Twin(oracle, kind, ours, oracle.call("quota_open", kind=kind, samples=window[0], window_s=window[1]))
    try:
        yield made
    finally:
        made.call("quota_close")


steps = st.one_of(
    st.tuples(st.just("set"), names, st.one_of(st.none(), st.sampled_from([1.0, 10.0, 1000.0, 33.3]))),
    st.tuples(st.just("record"), who, st.one_of(st.integers(0, 20_000), st.floats(0, 100))),
    st.tuples(st.just("record"), who, st.integers(0, 20_000)),
    st.tuples(st.just("take back"), who, st.integers(0, 2_000)),
    st.tuples(st.just("most"), who, st.none()),
)


@compare
@given(
    kind=st.sampled_from(["producer_byte_rate", "request_percentage"]),
    window=windows,
    first=st.tuples(names, st.sampled_from([5.0, 1000.0])),
    run=st.lists(st.tuples(delays_ms, steps), min_size=5, max_size=40),
)
def test_rates_and_throttle_times_equal_those_of_kafka(
    log_oracle: LogOracle, kind: str, window: tuple[int, int], first: Any, run: Any
) -> None:
    shape = Windows(window[0], window[1] * 1000)
    longest = {"longest_ms": shape.size_ms} if kind == "request_percentage" else {}
    ours = RateQuota(kind, shape, **longest)
    with twin(log_oracle, kind, ours, window) as both:
        both.set(*first[0], first[1])
        for delay_ms, (what, where, value) in run:
            both.wait(delay_ms)
            if what == "set":
                both.set(*where, value)
                continue
            if not ours.is_enabled:
                continue
            client = {"user": where[0], "client_id": where[1]}
            if what == "record":
                kafkas = both.call("quota_record", value=value, **client)
                assert ours.record(*where, value, both.now_ms) == kafkas
            elif what == "take back":
                both.call("quota_take_back", value=value, **client)
                ours.take_back(*where, value, both.now_ms)
            else:
                assert ours.largest_unthrottled(*where) == both.call("quota_most", **client)


@compare
@given(
    window=windows,
    first=st.tuples(names, st.sampled_from([0.5, 2.0, 30.0])),
    run=st.lists(
        st.tuples(
            delays_ms,
            st.one_of(
                st.tuples(st.just("set"), names, st.sampled_from([0.5, 2.0, 30.0])),
                st.tuples(st.booleans(), who, st.lists(st.integers(1, 40), min_size=1, max_size=4)),
                st.tuples(st.booleans(), who, st.lists(st.integers(1, 40), min_size=1, max_size=4)),
            ),
        ),
        min_size=5,
        max_size=30,
    ),
)
def test_controller_mutation_quotas_equal_kafkas(
    log_oracle: LogOracle, window: tuple[int, int], first: Any, run: Any
) -> None:
    ours = MutationQuotas(Windows(window[0], window[1] * 1000))
    with twin(log_oracle, "controller_mutation_rate", ours, window) as both:
        both.set(*first[0], first[1])
        for delay_ms, (what, where, value) in run:
            both.wait(delay_ms)
            if what == "set":
                both.set(*where, value)
                continue
            kafkas = both.call("quota_charge", user=where[0], client_id=where[1], strict=what, partitions=value)
            quota = ours.of(*where, both.now_ms, strict=what)
            assert {"refused": [is_refused(quota, one) for one in value], "throttle_ms": quota.throttle_ms} == kafkas


def is_refused(quota: MutationQuota, partitions: int) -> bool:
    try:
        quota.charge(partitions)
    except KafkaError as error:
        return error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return False


@compare
@given(
    window=windows,
    limit=st.sampled_from([0, 10, 1_000]),
    run=st.lists(st.tuples(delays_ms, st.integers(0, 20_000)), min_size=5, max_size=40),
)
def test_replication_quotas_equal_kafkas(log_oracle: LogOracle, window: tuple[int, int], limit: int, run: Any) -> None:
    log_oracle.reset()
    now_ms = START_MS
    ours = ReplicationQuota(Windows(window[0], window[1] * 1000), lambda: limit)
    manager = log_oracle.call("replication_quota_open", samples=window[0], window_s=window[1], limit=limit)
    try:
        for delay_ms, size in run:
            now_ms += delay_ms
            log_oracle.now_ms = now_ms
            before = ours.is_exceeded(now_ms)
            ours.record(size, now_ms)
            after = ours.is_exceeded(now_ms)
            assert [before, after] == log_oracle.call("replication_quota_record", manager=manager, size=size)
    finally:
        log_oracle.call("replication_quota_close", manager=manager)
