"""Compiled readers and writers of small messages; property tests cover every message."""

from __future__ import annotations

import pytest

from tailrace.protocol.errors import MalformedMessage
from tailrace.protocol.messages import (
    ApiVersionsRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
)


def test_a_flexible_message_has_compact_lengths_and_a_tag_count() -> None:
    """Compact lengths, and a count of tagged fields at the end."""
    request = ApiVersionsRequest(client_software_name="me", client_software_version="1.0")
    assert request.encode(3) == b"\x03me\x041.0\x00"
    assert ApiVersionsRequest.decode(b"\x03me\x041.0\x00", 3) == request


def test_a_version_without_fields_is_encoded_as_no_bytes() -> None:
    assert ApiVersionsRequest().encode(0) == b""
    assert ApiVersionsRequest.decode(b"", 0) == ApiVersionsRequest()


def test_plain_arrays_have_a_32_bit_length_that_is_minus_one_for_null() -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    assert request.encode(1) == b"\x00\x00\x00\x01\x00\x01t"
    assert MetadataRequest(topics=None).encode(1) == b"\xff\xff\xff\xff"
    assert MetadataRequest.decode(b"\xff\xff\xff\xff", 1).topics is None


def test_null_in_a_version_that_does_not_allow_it_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="MetadataRequest v0: topics must not be null"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)
    with pytest.raises(MalformedMessage, match="client_software_name must not be null"):
        ApiVersionsRequest.decode(b"\x00\x041.0\x00", 3)


def test_a_nullable_struct_is_announced_by_a_byte() -> None:
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="t", partition_index=1)
    request = DescribeTopicPartitionsRequest(response_partition_limit=5, cursor=cursor)
    assert request.encode(0) == b"\x01\x00\x00\x00\x05\x01\x02t\x00\x00\x00\x01\x00\x00"
    request.cursor = None
    assert request.encode(0) == b"\x01\x00\x00\x00\x05\xff\x00"
    assert DescribeTopicPartitionsRequest.decode(request.encode(0), 0) == request


def test_tagged_fields_are_written_only_when_set() -> None:
    plain = FetchRequest().encode(17)
    assert plain.endswith(b"\x01\x00")  # an empty rack id, no tagged fields
    request = FetchRequest(cluster_id="c", replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=3))
    assert request.encode(17) == plain[:-1] + (
        b"\x02"
        + (b"\x00\x02" + b"\x02c")
        + (b"\x01\x0d" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x00\x00\x00\x00\x03" + b"\x00")
    )
    assert FetchRequest.decode(request.encode(17), 17) == request


def test_unknown_tagged_fields_are_kept_between_the_known_ones() -> None:
    data = FetchRequest().encode(17)[:-1] + b"\x03" + b"\x00\x02\x02c" + b"\x63\x01?" + b"\xc8\x01\x00"
    request = FetchRequest.decode(data, 17)
    assert request.cluster_id == "c"
    assert request.unknown_tags == ((99, b"?"), (200, b""))
    assert request.encode(17) == data


def test_a_tagged_field_of_another_version_is_malformed() -> None:
    partition = FetchRequest.FetchPartition(high_watermark=5)
    request = FetchRequest(topics=[FetchRequest.FetchTopic(partitions=[partition])])
    assert FetchRequest.decode(request.encode(18), 18) == request
    with pytest.raises(MalformedMessage, match="tagged field 1 does not belong to this version"):
        FetchRequest.decode(request.encode(18), 17)


@pytest.mark.parametrize("size", [b"\x01", b"\x03"])
def test_a_tagged_field_whose_length_is_wrong_is_malformed(size: bytes) -> None:
    data = FetchRequest().encode(17)[:-1] + b"\x01\x00" + size + b"\x02c??"
    with pytest.raises(MalformedMessage, match="tagged field 0 is not as long as it says"):
        FetchRequest.read(data, 17)


def test_fields_that_the_version_lacks_are_read_as_their_defaults() -> None:
    response = MetadataResponse.decode(b"\x00\x00\x00\x00\x00\x00\x00\x00", 0)
    assert (response.throttle_time_ms, response.cluster_id, response.controller_id) == (0, None, -1)
    assert response.cluster_authorized_operations == -(2**31)


def test_ignorable_fields_are_dropped_where_the_version_lacks_them() -> None:
    request = FetchRequest(session_id=7, rack_id="r")
    assert FetchRequest.decode(request.encode(0), 0) == FetchRequest(max_bytes=2**31 - 1)


def test_a_field_may_change_its_place_between_versions() -> None:
    """The commit timestamp of version 1 was dropped with the version; the retention time of 2 to 4 too."""
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[])]
    )
    assert request.encode(0) == b"\0\1g\0\0\0\1\0\1t\0\0\0\0"
    assert OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=3, member_id="m").encode(1) == (
        b"\0\1g\0\0\0\3\0\1m\0\0\0\0"
    )


def test_an_array_longer_than_its_bytes_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="topics has no room for 16777216 elements"):
        MetadataRequest.decode(b"\x01\x00\x00\x00", 0)
    request = FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic(topic_id=bytes(16))])
    with pytest.raises(MalformedMessage, match="array of 100 int32: is longer than the bytes that follow"):
        FetchRequest.decode(request.encode(17)[:-4] + b"\x65" + bytes(20), 17)


def test_an_incomplete_message_is_malformed_where_it_ends() -> None:
    broker = DescribeClusterResponse.DescribeClusterBroker(host="h" * 200)
    data = DescribeClusterResponse(error_message="no", cluster_id="c", brokers=[broker]).encode(1)
    for end in range(len(data)):
        with pytest.raises(MalformedMessage) as caught:
            DescribeClusterResponse.decode(data[:end], 1)
        assert caught.value.position <= end
        assert caught.value.what.startswith(("DescribeClusterResponse v1", "uvarint"))


def test_readers_accept_any_buffer() -> None:
    data = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t")]).encode(5)
    for buffer in (data, bytearray(data), memoryview(data)):
        assert FetchResponse.decode(buffer, 5).responses[0].topic == "t"
        assert MetadataRequest.decode(type(buffer)(b"\0\0\0\1\0\1t"), 1).topics == [
            MetadataRequest.MetadataRequestTopic(name="t")
        ]
