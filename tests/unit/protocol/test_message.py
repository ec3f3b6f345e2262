"""Messages as Python objects."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tailrace.protocol.errors import MalformedMessage, UnsupportedVersion
from tailrace.protocol.messages import (
    ConsumerGroupDescribeResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
)


def test_fields_start_at_their_defaults() -> None:
    request = FetchRequest()
    assert (request.max_bytes, request.session_epoch, request.cluster_id, request.rack_id) == (2**31 - 1, -1, None, "")
    assert request.topics == []
    assert request.unknown_tags == ()
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)


def test_lists_are_not_shared() -> None:
    FetchRequest().topics.append(FetchRequest.FetchTopic())
    assert FetchRequest().topics == []
    members = [ConsumerGroupDescribeResponse.Member() for _ in range(2)]
    members[0].assignment.topic_partitions.append(ConsumerGroupDescribeResponse.TopicPartitions())
    assert members[1].assignment.topic_partitions == []


def test_a_default_struct_is_shared_and_refuses_changes() -> None:
    one, other = FetchResponse.PartitionData(), FetchResponse.PartitionData()
    assert one.current_leader is other.current_leader
    with pytest.raises(AttributeError, match="shared"):
        one.current_leader.leader_id = 3
    one.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=3)
    assert other.current_leader.leader_id == -1


def test_an_unknown_field_is_refused() -> None:
    make: Any = FetchRequest
    with pytest.raises(TypeError):
        make(no_such_field=1)
    with pytest.raises(AttributeError):
        make().no_such_field = 1


def test_messages_with_equal_fields_are_equal() -> None:
    assert FetchRequest(min_bytes=1) == FetchRequest(min_bytes=1)
    assert FetchRequest(min_bytes=1) != FetchRequest(min_bytes=2)
    assert FetchRequest() != ProduceRequest()
    assert FetchRequest() != 1
    tagged = FetchRequest()
    tagged.unknown_tags = ((9, b""),)
    assert tagged != FetchRequest()
    with pytest.raises(TypeError):
        hash(FetchRequest())


def test_the_repr_of_a_message_lists_fields_that_are_not_default() -> None:
    request = FetchRequest(min_bytes=1, topics=[FetchRequest.FetchTopic(topic="t")])
    assert repr(request) == "FetchRequest(min_bytes=1, topics=[FetchTopic(topic='t')])"


def test_messages_can_be_copied_and_pickled() -> None:
    request = FetchRequest(min_bytes=1, topics=[FetchRequest.FetchTopic(topic="t")])
    for again in (pickle.loads(pickle.dumps(request)), copy.deepcopy(request)):
        assert again == request
        assert type(again) is FetchRequest
        assert type(again.topics[0]) is FetchRequest.FetchTopic
        again.replica_state.replica_id = 3  # the copy of a shared default is no longer shared
    assert request.replica_state.replica_id == -1


def test_decode_requires_the_whole_buffer_and_read_does_not() -> None:
    data = MetadataRequest(topics=[]).encode(1)
    assert MetadataRequest.read(b"*" + data + b"*", 1, 1) == (MetadataRequest(topics=[]), 5)
    with pytest.raises(MalformedMessage, match="followed by 1 bytes"):
        MetadataRequest.decode(data + b"*", 1)


def test_records_are_passed_on_as_they_are() -> None:
    class FileSlice:
        def __len__(self) -> int:
            return 1000

    slice_of_a_file = FileSlice()
    partition = FetchResponse.PartitionData(records=slice_of_a_file)
    response = FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse(topic_id=bytes(16), partitions=[partition])]
    )
    parts: list[Any] = []
    response.write(parts, 17)
    place = next(i for i, part in enumerate(parts) if part is slice_of_a_file)
    parts[place] = b"x" * 1000
    read = FetchResponse.decode(b"".join(parts), 17)
    assert read.responses[0].partitions[0].records == b"x" * 1000


def test_records_that_are_read_share_the_buffer() -> None:
    partition = ProduceRequest.PartitionProduceData(records=b"abc")
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])
    buffer = bytearray(request.encode(7))
    records: Any = ProduceRequest.decode(buffer, 7).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    buffer[-3:] = b"xyz"
    assert records == b"xyz"


@pytest.mark.parametrize("version", [-1, 19, 10**6])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match="FetchRequest has versions 0-18"):
        FetchRequest.decode(b"", version)
    with pytest.raises(UnsupportedVersion):
        FetchRequest().encode(version)
