"""Commits whose records exceed max.message.bytes of __consumer_offsets, at Apache Kafka and at Tailrace."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol import messages as m
from tests.conformance.test_groups_like_kafka import SETTINGS, make_twins, start_with_groups
from tests.support.group_twins import GroupTwins
from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka

LIMIT = 2_000
PATIENCE_S = 30
_SETTINGS = {
    **SETTINGS,
    "message.max.bytes": str(LIMIT),
    "offset.metadata.max.bytes": "8000",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_FITS, _EXCEEDS = "x" * (LIMIT // 2), "x" * LIMIT
_REFUSED = [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
_ACCEPTED = [ErrorCode.NONE] * 2


def test_commits_above_the_batch_limit_are_refused_as_at_kafka(kafka_broker: Callable[..., KafkaBroker]) -> None:
    twins, _ = make_twins(start_with_groups(kafka_broker, _SETTINGS), _SETTINGS)
    try:
        for version in (2, 9):
            assert _commit(twins, version, _FITS) == _ACCEPTED
            assert _commit(twins, version, _EXCEEDS) == _REFUSED
        of_length = [_commit(twins, 9, "x" * length) for length in range(LIMIT - 150, LIMIT - 50)]
        assert all(kafkas == ours for kafkas, ours in of_length)
        assert of_length[0] == _ACCEPTED
        assert of_length[-1] == _REFUSED
        producers = _begin(twins)
        for version in (0, 3, 5):
            assert _commit_in_transaction(twins, version, producers, _FITS) == _ACCEPTED
            assert _commit_in_transaction(twins, version, producers, _EXCEEDS) == _REFUSED
    finally:
        twins.close()


def _commit(twins: GroupTwins, version: int, metadata: str) -> list[ErrorCode]:
    request = m.OffsetCommitRequest(group_id="g")
    request.topics = [
        request.OffsetCommitRequestTopic(
            name="orders",
            partitions=[
                request.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=metadata)
            ],
        )
    ]
    return [one.topics[0].partitions[0].error_code for one in twins.ask_both("a", request, version)]


def _begin(twins: GroupTwins) -> tuple[tuple[int, int], ...]:
    """Begin a transaction at both sides that has the group's offsets. Return the producer id and epoch of each."""
    _until_ready(lambda: twins.ask_both("a", m.FindCoordinatorRequest(key="t", key_type=1), 2))
    init = m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    producers = tuple(
        (one.producer_id, one.producer_epoch) for one in _until_ready(lambda: twins.ask_both("a", init, 4))
    )
    for side, (producer_id, epoch) in enumerate(producers):
        add = m.AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=producer_id, producer_epoch=epoch, group_id="g"
        )
        _until_ready(lambda side=side, add=add: [twins.ask_one(side, "a", add, 3)])
    return producers


def _until_ready(ask: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Repeat a request until no side refuses it because its coordinator is not ready."""
    until = time.monotonic() + PATIENCE_S
    while True:
        answers = ask()
        if not any(one.error_code for one in answers):
            return answers
        assert time.monotonic() < until, answers
        time.sleep(0.05)


def _commit_in_transaction(
    twins: GroupTwins, version: int, producers: tuple[tuple[int, int], ...], metadata: str
) -> list[ErrorCode]:
    codes = []
    for side, (producer_id, epoch) in enumerate(producers):
        request = m.TxnOffsetCommitRequest(
            transactional_id="t", group_id="g", producer_id=producer_id, producer_epoch=epoch
        )
        partition = request.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=6, committed_metadata=metadata
        )
        request.topics = [request.TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])]
        codes.append(twins.ask_one(side, "a", request, version).topics[0].partitions[0].error_code)
    return codes
