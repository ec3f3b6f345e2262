"""F6, F7: the byte limits of a fetch."""

from __future__ import annotations

import pytest

from tailrace.fetch.byte_budget import ByteBudget
from tailrace.model.errors import ErrorCode
from tests.simulation.node import Asked, Node, bytes_of, request_for, want

BATCH = 170  # bytes of a batch with one value of 100 bytes


def led(node: Node, count: int, batches: int = 3):  # type: ignore[no-untyped-def]
    partitions = [node.lead("topic", n) for n in range(count)]
    for partition in partitions:
        for _ in range(batches):
            node.append(partition, b"x" * 100)
        assert partition.log.size == BATCH * batches
    return partitions


def sizes(asked: Asked) -> list[int]:
    return [len(answer.records) for answer in asked.partitions.values()]


def test_partitions_use_the_byte_budget_in_order() -> None:
    budget = ByteBudget(100)
    assert (budget.share(70), budget.at_least_one) == (70, True)
    budget.take(0)
    assert budget.at_least_one
    budget.take(60)
    assert (budget.share(70), budget.at_least_one) == (40, False)
    budget.take(50)
    assert budget.share(70) == 0


def test_f6_max_bytes_is_for_the_response_and_partition_max_bytes_for_each_partition() -> None:
    node = Node()
    partitions = led(node, 3)
    asked = node.fetch([want(one, 0, max_bytes=2 * BATCH) for one in partitions], max_bytes=3 * BATCH)
    assert sizes(asked) == [2 * BATCH, BATCH, 0]


def test_f6_the_first_non_empty_partition_returns_one_batch_whatever_the_limits() -> None:
    node = Node()
    empty, *partitions = led(node, 1, batches=0) + [node.lead("other", n) for n in range(2)]
    for partition in partitions:
        node.append(partition, b"x" * 100)
    asked = node.fetch([want(one, 0, max_bytes=10) for one in (empty, *partitions)], max_bytes=10)
    assert sizes(asked) == [0, BATCH, 0]
    asked = node.fetch([want(one, 0, max_bytes=0) for one in (empty, *partitions)], max_bytes=0)
    assert sizes(asked) == [0, BATCH, 0]


def test_f6_after_the_first_batch_the_limits_are_strict() -> None:
    node = Node()
    first, second = led(node, 2)
    asked = node.fetch([want(first, 2), want(second, 0, max_bytes=BATCH - 1)], max_bytes=10_000)
    assert sizes(asked) == [BATCH, 0]
    asked = node.fetch([want(first, 2), want(second, 0, max_bytes=2 * BATCH - 1)], max_bytes=10_000)
    assert sizes(asked) == [BATCH, 2 * BATCH - 1]  # the client drops an incomplete last batch


@pytest.mark.parametrize("version", [0, 1, 2])
def test_f6_versions_0_to_2_never_exceed_the_limit(version: int) -> None:
    node = Node()
    (partition,) = led(node, 1)
    for limit in (10, 50, 150, 400):
        asked = node.fetch([want(partition, 0, max_bytes=limit)], version=version)
        assert 0 < len(bytes_of(asked.only)) <= limit


def test_f7_an_incomplete_first_batch_is_left_out_of_the_response() -> None:
    """From version 3 on the partition waits for a later fetch. The client would take an incomplete batch for one that
    is too large."""
    node = Node()
    first, second = led(node, 2)
    for version in (3, 4, 11, 18):
        asked = node.fetch([want(first, 2), want(second, 0)], version=version, max_bytes=BATCH + 10)
        assert [bool(size) for size in sizes(asked)] == [True, False]
        assert asked.partitions["topic", 1].error_code == ErrorCode.NONE


def test_fetch_max_bytes_of_the_broker_and_the_quota_limit_the_response() -> None:
    node = Node()
    (partition,) = led(node, 1)
    node.fetches.max_bytes = 2 * BATCH
    assert sizes(node.fetch([want(partition, 0)])) == [2 * BATCH]
    asked = node.send(request_for([want(partition, 0)]), 18, quota_bytes=BATCH)
    assert sizes(asked) == [BATCH]


def test_a_negative_limit_is_an_error_for_partitions_with_records() -> None:
    node = Node()
    (partition,) = led(node, 1)
    assert node.fetch([want(partition, 0, max_bytes=-1)]).only.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    other = node.lead("other")
    node.append(other, b"a")
    asked = node.fetch([want(partition, 0), want(other, 0)], max_bytes=-1)
    # Only the first partition sees the response's limit below zero.
    assert [one.error_code for one in asked.partitions.values()] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
    assert node.fetch([want(partition, 3, max_bytes=-1)]).only.error_code == ErrorCode.NONE


def test_min_bytes_is_capped_at_max_bytes() -> None:
    node = Node()
    (partition,) = led(node, 1)
    asked = node.fetch([want(partition, 0)], min_bytes=1_000_000, max_bytes=BATCH, max_wait_ms=500)
    assert sizes(asked) == [BATCH]
