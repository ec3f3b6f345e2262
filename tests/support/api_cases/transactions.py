# ruff: noqa: N806 - short names for the classes of messages
"""Transactions: requests about unknown ids and producers, and malformed requests.

Requests within a running transaction are in `tests/support/transaction_play.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.protocol import messages as m
from tests.support.api_cases.common import INT_MAX, LONG_MAX, Case
from tests.support.api_twins import Make

EPOCH_MAX = 2**15 - 1
PRODUCERS = ((0, 0), (5, -1), (-1, 3), (LONG_MAX, EPOCH_MAX), (-1, -1))


def always(request: Any) -> Make:
    return lambda side: request


def transaction_cases() -> Iterator[Case]:
    yield "made", always(m.FindCoordinatorRequest(key="made", key_type=1, coordinator_keys=["made"]))
    yield from init_cases()
    yield from add_cases()
    for producer_id, epoch in PRODUCERS:
        for name in ("nobody", ""):
            for is_commit in (True, False):
                yield (
                    f"end {name!r} {producer_id} {epoch} {is_commit}",
                    always(
                        m.EndTxnRequest(
                            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=is_commit
                        )
                    ),
                )
            yield (
                f"offsets of {name!r} {producer_id} {epoch}",
                always(
                    m.AddOffsetsToTxnRequest(
                        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id="g"
                    )
                ),
            )
    yield from marker_cases()
    yield from offset_cases()
    yield "describe", always(m.DescribeTransactionsRequest(transactional_ids=["nobody", "", "a" * 1000, "nobody"]))
    yield "describe none", always(m.DescribeTransactionsRequest(transactional_ids=[]))
    for states in ([], ["Ongoing"], ["Odd", "Empty"], ["empty"], [""]):
        for ids in ([], [7_000_000], [-1]):
            listing = m.ListTransactionsRequest(state_filters=states, producer_id_filters=ids)
            yield f"list {states} {ids}", always(listing)
    for duration in (-2, 0, LONG_MAX):
        yield f"list {duration}", always(m.ListTransactionsRequest(duration_filter=duration))
    for pattern in ("", "nobody.*", "(", "[a", "*", "a{2", "\\"):
        yield f"list {pattern!r}", always(m.ListTransactionsRequest(transactional_id_pattern=pattern))


def init_cases() -> Iterator[Case]:
    for timeout_ms in (0, -1, 900_001, INT_MAX):
        request = m.InitProducerIdRequest(transactional_id="timeouts", transaction_timeout_ms=timeout_ms)
        yield f"timeout {timeout_ms}", always(request)
    yield "empty id", always(m.InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1_000))
    for producer_id, epoch in ((5, -1), (-1, 3)):
        request = m.InitProducerIdRequest(
            transactional_id="half", transaction_timeout_ms=1_000, producer_id=producer_id, producer_epoch=epoch
        )
        yield f"half a producer {producer_id}", always(request)


def add_cases() -> Iterator[Case]:
    Topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    topics = {
        "one": [Topic(name="orders", partitions=[0, 1])],
        "unknown": [Topic(name="orders", partitions=[0, 99]), Topic(name="nowhere", partitions=[0])],
        "internal": [Topic(name="__transaction_state", partitions=[0]), Topic(name="orders", partitions=[0])],
        "none": [],
        "empty": [Topic(name="orders", partitions=[])],
        "negative": [Topic(name="orders", partitions=[-1])],
    }
    Transaction = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    for what, chosen in topics.items():
        for name in ("nobody", ""):
            old = m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=5,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=chosen,
            )
            yield f"add {what} to {name!r}", always(old)
            for verify_only in (True, False):
                one = Transaction(
                    transactional_id=name, producer_id=5, producer_epoch=0, verify_only=verify_only, topics=chosen
                )
                yield (
                    f"add {what} to {name!r} by a broker {verify_only}",
                    always(m.AddPartitionsToTxnRequest(transactions=[one])),
                )


def marker_cases() -> Iterator[Case]:
    Marker = m.WriteTxnMarkersRequest.WritableTxnMarker
    Topic = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic

    def markers(*topics: Any, producer_id: int = 6_000_000, epoch: int = 0) -> Make:
        one = Marker(producer_id=producer_id, producer_epoch=epoch, transaction_result=True, topics=list(topics))
        return always(m.WriteTxnMarkersRequest(markers=[one]))

    yield "no markers", always(m.WriteTxnMarkersRequest(markers=[]))
    yield "no topics", markers()
    yield "markers nowhere", markers(Topic(name="nowhere", partition_indexes=[0, 1]))
    yield "markers", markers(Topic(name="sequenced", partition_indexes=[0, 99, -1]))
    yield "markers with a newer epoch", markers(Topic(name="sequenced", partition_indexes=[0]), epoch=5)
    yield "markers with an older epoch", markers(Topic(name="sequenced", partition_indexes=[0]), epoch=4)


def offset_cases() -> Iterator[Case]:
    Topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    Partition = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition

    def commit(*topics: Any, group: str = "g") -> Make:
        return always(
            m.TxnOffsetCommitRequest(
                transactional_id="nobody", group_id=group, producer_id=5, producer_epoch=0, topics=list(topics)
            )
        )

    known = Topic(name="orders", partitions=[Partition(partition_index=0, committed_offset=4, committed_metadata="")])
    odd = Topic(name="orders", partitions=[Partition(partition_index=99, committed_offset=4, committed_metadata=None)])
    nowhere = Topic(name="nowhere", partitions=[Partition(partition_index=0, committed_offset=4)])
    yield "no offsets", commit()
    yield "offsets", commit(known)
    yield "offsets of nothing", commit(odd, nowhere)
    yield "offsets and nothing", commit(known, nowhere)
    yield "offsets without a group", commit(known, group="")
