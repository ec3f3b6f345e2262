"""Flat requests and responses: the kernels read and write what the compiled messages read and write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.protocol.flat import fetch, offset_commit, produce, read_kernels, write_kernels
from tailrace.protocol.headers import RequestHeader, read_request_header, write_request_header, write_response
from tailrace.protocol.messages import FetchRequest, OffsetCommitRequest, ProduceRequest
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tests.support.interpreted import interpreted

READERS = (read_kernels, interpreted(read_kernels))
WRITERS = (write_kernels, interpreted(write_kernels))
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.one_of(st.sampled_from(["", "t", "größe", "x" * 200]), st.text(max_size=6))
IDS = st.binary(min_size=16, max_size=16)
CLIENT_IDS = st.one_of(st.none(), NAMES)
ELEMENTS_MAX = 4_096


def batch(**options: Any) -> bytes:
    builder = BatchBuilder(**options)
    builder.append(1, b"key", b"value")
    return bytes(builder.build())


PLAIN = (batch(), batch(producer_id=1, producer_epoch=0, base_sequence=0))
NOT_PLAIN = (
    b"",
    batch(codec=Codec.GZIP),
    batch(transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
    PLAIN[0] * 2,
    PLAIN[0][:-1],
    PLAIN[0] + b"\0",
    PLAIN[0][:16] + b"\1" + PLAIN[0][17:],
)
RECORDS = st.one_of(st.none(), st.sampled_from((*PLAIN, *NOT_PLAIN)), st.binary(max_size=200))


@st.composite
def produce_requests(draw: st.DrawFn) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=draw(st.one_of(st.none(), NAMES)),
        acks=draw(INT16),
        timeout_ms=draw(INT32),
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=draw(NAMES),
                topic_id=draw(IDS),
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=draw(INT32), records=draw(RECORDS))
                    for _ in range(draw(st.integers(0, 3)))
                ],
            )
            for _ in range(draw(st.integers(0, 3)))
        ],
    )


@st.composite
def fetch_requests(draw: st.DrawFn, version: int) -> FetchRequest:
    def partition() -> FetchRequest.FetchPartition:
        made = FetchRequest.FetchPartition(
            partition=draw(INT32),
            current_leader_epoch=draw(INT32),
            fetch_offset=draw(INT64),
            last_fetched_epoch=draw(INT32),
            log_start_offset=draw(INT64),
            partition_max_bytes=draw(INT32),
        )
        if version >= 17 and draw(st.booleans()):
            made.replica_directory_id = draw(IDS)
        if version >= 18 and draw(st.booleans()):
            made.high_watermark = draw(INT64)
        return made

    request = FetchRequest(
        max_wait_ms=draw(INT32),
        min_bytes=draw(INT32),
        max_bytes=draw(INT32),
        isolation_level=draw(st.integers(-128, 127)),
        session_id=draw(INT32),
        session_epoch=draw(INT32),
        rack_id=draw(NAMES),
        topics=[
            FetchRequest.FetchTopic(
                topic=draw(NAMES), topic_id=draw(IDS), partitions=[partition() for _ in range(draw(st.integers(0, 3)))]
            )
            for _ in range(draw(st.integers(0, 3)))
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(
                topic=draw(NAMES), topic_id=draw(IDS), partitions=draw(st.lists(INT32, max_size=3))
            )
            for _ in range(draw(st.integers(0, 2)))
        ],
    )
    if version < 15:
        request.replica_id = draw(INT32)
    elif draw(st.booleans()):
        request.replica_state = FetchRequest.ReplicaState(replica_id=draw(INT32), replica_epoch=draw(INT64))
    return request


def frame_of(request: Any, version: int, client_id: str | None) -> memoryview:
    header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, -7, client_id))
    return memoryview(bytearray(header + request.encode(version)))


@pytest.mark.parametrize("version", produce.FLAT_VERSIONS)
@given(data=st.data())
def test_a_produce_request_is_read_as_its_message(version: int, data: st.DataObject) -> None:
    client_id = data.draw(CLIENT_IDS)
    frame = frame_of(data.draw(produce_requests()), version, client_id)
    _, position = read_request_header(frame)
    expected = produce.ask_of(ProduceRequest.decode(frame, version, position), version)
    for kernels in READERS:
        read = kernels.read_flat_produce(frame, ELEMENTS_MAX)
        assert read is not None
        assert read[:3] == (version, -7, client_id)
        assert produce.ProduceAsk(*read[3]) == expected


@pytest.mark.parametrize("version", fetch.FLAT_VERSIONS)
@given(data=st.data())
def test_a_fetch_request_is_read_as_its_message(version: int, data: st.DataObject) -> None:
    client_id = data.draw(CLIENT_IDS)
    frame = frame_of(data.draw(fetch_requests(version)), version, client_id)
    _, position = read_request_header(frame)
    expected = fetch.ask_of(FetchRequest.decode(frame, version, position), version)
    for kernels in READERS:
        read = kernels.read_flat_fetch(frame, ELEMENTS_MAX)
        assert read is not None
        assert read[:3] == (version, -7, client_id)
        assert fetch.FetchAsk(*read[3]) == expected


@st.composite
def commit_requests(draw: st.DrawFn) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=draw(NAMES),
        generation_id_or_member_epoch=draw(INT32),
        member_id=draw(NAMES),
        group_instance_id=draw(st.one_of(st.none(), NAMES)),
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=draw(NAMES),
                topic_id=draw(IDS),
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=draw(INT32),
                        committed_offset=draw(INT64),
                        committed_leader_epoch=draw(INT32),
                        committed_metadata=draw(st.one_of(st.none(), NAMES)),
                    )
                    for _ in range(draw(st.integers(0, 3)))
                ],
            )
            for _ in range(draw(st.integers(0, 3)))
        ],
    )


@pytest.mark.parametrize("version", offset_commit.FLAT_VERSIONS)
@given(data=st.data())
def test_an_offset_commit_request_is_read_as_its_message(version: int, data: st.DataObject) -> None:
    client_id = data.draw(CLIENT_IDS)
    frame = frame_of(data.draw(commit_requests()), version, client_id)
    _, position = read_request_header(frame)
    expected = offset_commit.ask_of(OffsetCommitRequest.decode(frame, version, position), version)
    for kernels in READERS:
        read = kernels.read_flat_offset_commit(frame, ELEMENTS_MAX)
        assert read is not None
        assert read[:3] == (version, -7, client_id)
        assert offset_commit.CommitAsk(*read[3]) == expected
        for size in range(len(frame)):
            assert kernels.read_flat_offset_commit(frame[:size], ELEMENTS_MAX) is None


@pytest.mark.parametrize("version", offset_commit.FLAT_VERSIONS)
@given(data=st.data())
def test_an_offset_commit_response_is_written_as_its_message(version: int, data: st.DataObject) -> None:
    topics: Any = []
    for _ in range(data.draw(st.integers(0, 3))):
        partitions = [(data.draw(INT32), 0, 0, b"", -1) for _ in range(data.draw(st.integers(0, 3)))]
        errors = data.draw(st.one_of(INT16, st.lists(INT16, min_size=len(partitions), max_size=len(partitions))))
        topics.append((data.draw(IDS if version >= 10 else NAMES), partitions, errors))
    expected = b"".join(write_response(8, version, 5, offset_commit.message_of(topics, 17)))
    for kernels in WRITERS:
        assert kernels.write_committed(version, 5, 17, topics) == expected


@pytest.mark.parametrize("kernels", READERS)
def test_only_one_whole_uncompressed_batch_outside_of_transactions_is_plain(kernels: Any) -> None:
    assert [kernels.is_plain(records, 0, len(records)) for records in PLAIN] == [True, True]
    assert [kernels.is_plain(records, 0, len(records)) for records in NOT_PLAIN] == [False] * len(NOT_PLAIN)


@pytest.mark.parametrize("kernels", READERS)
@pytest.mark.parametrize(("records", "plain_bytes"), [(PLAIN, sum(map(len, PLAIN))), ((*PLAIN, b""), -1), ((), 0)])
def test_the_plain_bytes_of_a_request_count_only_if_all_its_records_are_plain(
    kernels: Any, records: tuple[bytes, ...], plain_bytes: int
) -> None:
    parts = [ProduceRequest.PartitionProduceData(index=0, records=one) for one in records]
    topic = ProduceRequest.TopicProduceData(topic_id=bytes(16), partition_data=parts)
    frame = frame_of(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), 13, None)
    assert kernels.read_flat_produce(frame, ELEMENTS_MAX)[3][-2:] == (len(records) or 1, plain_bytes)


@pytest.mark.parametrize("kernels", READERS)
def test_a_request_with_too_many_elements_is_left_to_the_message_reader(kernels: Any) -> None:
    partition = ProduceRequest.PartitionProduceData(index=0, records=b"")
    topic = ProduceRequest.TopicProduceData(topic_id=bytes(16), partition_data=[partition] * 10)
    frame = frame_of(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), 13, None)
    assert kernels.read_flat_produce(frame, 11) is not None
    assert kernels.read_flat_produce(frame, 10) is None


@pytest.mark.parametrize("kernels", READERS)
@pytest.mark.parametrize("version", [9, 13])
def test_a_request_that_is_cut_short_is_left_to_the_message_reader(kernels: Any, version: int) -> None:
    partition = ProduceRequest.PartitionProduceData(index=0, records=b"records")
    topic = ProduceRequest.TopicProduceData(name="t", topic_id=bytes(16), partition_data=[partition])
    frame = frame_of(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), version, "client")
    assert kernels.read_flat_produce(frame, ELEMENTS_MAX) is not None
    for size in range(len(frame)):
        assert kernels.read_flat_produce(frame[:size], ELEMENTS_MAX) is None
    assert kernels.read_flat_produce(memoryview(bytearray(frame) + b"\0"), ELEMENTS_MAX) is None


class Slice(bytearray):
    """Stands for a slice of a file: not bytes, but with a length."""


@st.composite
def fetch_answers(draw: st.DrawFn) -> fetch.FetchAnswer:
    def partition() -> fetch.PartitionAnswer:
        records = draw(st.one_of(st.binary(max_size=300), st.binary(min_size=1, max_size=300).map(Slice)))
        aborted = draw(st.one_of(st.none(), st.lists(st.tuples(INT64, INT64), max_size=3)))
        rare = draw(st.integers(0, 9))
        return fetch.PartitionAnswer(
            draw(INT32),
            draw(INT16),
            draw(INT64),
            draw(INT64),
            draw(INT64),
            aborted,
            draw(INT32),
            records,
            draw(st.tuples(INT32, INT64)) if rare == 0 else None,
            draw(st.tuples(INT32, INT32)) if rare == 1 else None,
        )

    topics = [
        (draw(NAMES), draw(IDS), [partition() for _ in range(draw(st.integers(0, 3)))])
        for _ in range(draw(st.integers(0, 3)))
    ]
    return fetch.FetchAnswer(draw(INT16), draw(INT32), topics)


@pytest.mark.parametrize("version", fetch.FLAT_VERSIONS)
@given(data=st.data())
def test_a_fetch_response_is_written_as_its_message(version: int, data: st.DataObject) -> None:
    answer = data.draw(fetch_answers())
    expected = b"".join(map(bytes, write_response(1, version, 5, fetch.message_of(answer, 17))))
    assert b"".join(map(bytes, fetch.parts_of(answer, version, 5, 17))) == expected
    is_rare = any(one.diverging or one.leader for _, _, partitions in answer.topics for one in partitions)
    for kernels in WRITERS:
        parts = kernels.write_fetched(version, 5, 17, answer.error_code, answer.session_id, answer.topics)
        assert (parts is None) == is_rare
        if parts is not None:
            assert b"".join(map(bytes, parts)) == expected
            slices = [one.records for _, _, each in answer.topics for one in each if isinstance(one.records, Slice)]
            assert [part for part in parts if isinstance(part, Slice)] == slices


@pytest.mark.parametrize("version", produce.FLAT_VERSIONS)
@given(data=st.data())
def test_a_produce_response_is_written_as_its_message(version: int, data: st.DataObject) -> None:
    def partition() -> produce.ProducedPartition:
        made = produce.ProducedPartition(data.draw(INT32))
        made.error, made.first_offset, made.append_time_ms = data.draw(INT16), data.draw(INT64), data.draw(INT64)
        made.log_start = data.draw(INT64)
        if data.draw(st.integers(0, 5)) == 0:
            made.message = data.draw(NAMES)
            made.record_errors = data.draw(st.lists(st.tuples(INT32, st.one_of(st.none(), NAMES)), max_size=2))
        return made

    topics: list[Any] = [
        (data.draw(IDS if version >= 13 else NAMES), [partition() for _ in range(data.draw(st.integers(0, 3)))])
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    expected = b"".join(write_response(0, version, 5, produce.message_of(topics, 17, {})))
    assert b"".join(produce.parts_of(topics, version, 5, 17)) == expected
    is_rare = any(one.message is not None or one.record_errors for _, partitions in topics for one in partitions)
    for kernels in WRITERS:
        written = kernels.write_produced(version, 5, 17, topics)
        assert (written is None) == is_rare
        assert written is None or bytes(written) == expected
