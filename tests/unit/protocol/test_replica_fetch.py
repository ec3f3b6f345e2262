"""A follower's Fetch and its response: the fast path and the compiled messages agree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.flat.replica_fetch import PlainAnswer, ReplicaFetchRequest, read_replica_answer
from tailrace.protocol.messages import FetchRequest, FetchResponse

SEEDS = range(40)


def request_of(kind: type[FetchRequest], dice: random.Random) -> FetchRequest:
    partitions = [
        FetchRequest.FetchPartition(
            partition=dice.randrange(2**31),
            current_leader_epoch=dice.randrange(-1, 2**31),
            fetch_offset=dice.randrange(2**63),
            last_fetched_epoch=dice.randrange(-1, 2**31),
            log_start_offset=dice.randrange(-1, 2**63),
            partition_max_bytes=dice.randrange(2**31),
        )
        for _ in range(dice.choice((1, 2, 200)))
    ]
    topics = [
        FetchRequest.FetchTopic(topic_id=dice.randbytes(16), partitions=partitions) for _ in range(dice.randrange(3))
    ]
    forgotten = [
        FetchRequest.ForgottenTopic(
            topic_id=dice.randbytes(16), partitions=[dice.randrange(2**31) for _ in range(dice.choice((1, 3, 150)))]
        )
        for _ in range(dice.randrange(3))
    ]
    return kind(
        replica_state=FetchRequest.ReplicaState(replica_id=dice.randrange(2**31), replica_epoch=dice.randrange(2**63)),
        max_wait_ms=dice.randrange(2**31),
        min_bytes=dice.randrange(2**31),
        max_bytes=dice.randrange(2**31),
        session_id=dice.randrange(2**31),
        session_epoch=dice.randrange(-1, 2**31),
        topics=topics,
        forgotten_topics_data=forgotten,
    )


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_the_fast_path_writes_the_same_request_bytes(version: int) -> None:
    for seed in SEEDS:
        parts: list[Any] = []
        request_of(ReplicaFetchRequest, random.Random(seed)).write(parts, version)
        assert b"".join(parts) == request_of(FetchRequest, random.Random(seed)).encode(version)


def answer_of(dice: random.Random) -> FetchResponse:
    return FetchResponse(
        session_id=dice.randrange(2**31),
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic_id=dice.randbytes(16),
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=dice.randrange(2**31),
                        high_watermark=dice.randrange(-1, 2**63),
                        last_stable_offset=dice.randrange(-1, 2**63),
                        log_start_offset=dice.randrange(-1, 2**63),
                        aborted_transactions=dice.choice((None, [])),
                        records=dice.choice(
                            (None, b"", dice.randbytes(5), dice.randbytes(126), dice.randbytes(70_000))
                        ),
                    )
                    for _ in range(dice.choice((1, 2, 100)))
                ],
            )
            for _ in range(dice.randrange(3))
        ],
    )


def facts(answer: Any) -> list[Any]:
    return [answer.error_code, answer.session_id] + [
        (
            topic.topic_id,
            one.partition_index,
            one.error_code,
            one.high_watermark,
            one.log_start_offset,
            one.diverging_epoch,
            None if one.records is None else bytes(one.records),
        )
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.mark.parametrize("version", [15, 18])
def test_the_fast_path_reads_a_plain_response_like_the_message(version: int) -> None:
    for seed in SEEDS:
        data = memoryview(b"head" + answer_of(random.Random(seed)).encode(version))
        answer = read_replica_answer(data, version, 4)
        assert isinstance(answer, PlainAnswer)
        assert facts(answer) == facts(FetchResponse.decode(data, version, 4))


def test_any_other_response_is_read_as_a_message() -> None:
    def refused(answer: FetchResponse) -> None:
        answer.error_code = 70

    def with_an_error(answer: FetchResponse) -> None:
        answer.responses[0].partitions[0].error_code = 6

    def diverging(answer: FetchResponse) -> None:
        answer.responses[0].partitions[0].diverging_epoch = FetchResponse.EpochEndOffset(epoch=3, end_offset=17)

    def elsewhere(answer: FetchResponse) -> None:
        answer.node_endpoints = [FetchResponse.NodeEndpoint(node_id=3, host="h", port=1)]

    def aborted(answer: FetchResponse) -> None:
        gone = FetchResponse.AbortedTransaction(producer_id=1, first_offset=2)
        answer.responses[0].partitions[0].aborted_transactions = [gone]

    def long(answer: FetchResponse) -> None:
        answer.responses[0].partitions = answer.responses[0].partitions[:1] * 200

    for change in (refused, with_an_error, diverging, elsewhere, aborted, long):
        message = answer_of(random.Random(1))
        assert message.responses
        change(message)
        data = memoryview(message.encode(18))
        assert read_replica_answer(data, 18, 0) == FetchResponse.decode(data, 18)


def test_a_response_that_is_too_short_or_too_long_is_malformed() -> None:
    whole = answer_of(random.Random(1)).encode(18)
    for end in (*range(60), len(whole) - 1):
        with pytest.raises(ProtocolError):
            read_replica_answer(memoryview(whole[:end]), 18, 0)
    with pytest.raises(ProtocolError):
        read_replica_answer(memoryview(whole + b"\0"), 18, 0)
