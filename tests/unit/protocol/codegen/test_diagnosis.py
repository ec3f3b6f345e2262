"""A message that cannot be written names the field at fault."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.messages import CreateTopicsRequest, FetchRequest, FetchResponse, MetadataRequest

Topic: Any = FetchRequest.FetchTopic
Partition: Any = FetchRequest.FetchPartition
make: Any = FetchRequest


@pytest.mark.parametrize(
    ("message", "version", "complaint"),
    [
        (make(max_wait_ms=2**31), 4, "max_wait_ms is 2147483648, which is not a valid int32"),
        (make(max_wait_ms="soon"), 4, "max_wait_ms is 'soon', which is not a valid int32"),
        (make(rack_id=None), 11, "rack_id must not be None"),
        (make(rack_id=b"r"), 11, "rack_id is b'r', not a string"),
        (make(rack_id="x" * 40000), 11, "rack_id has 40000 bytes, the limit of a string is 32767"),
        (make(rack_id="x" * 40000), 17, "rack_id has 40000 bytes, the limit of a string is 32767"),
        (make(rack_id="\ud800"), 11, "rack_id cannot be written as UTF-8"),
        (make(topics=None), 11, "topics must not be None"),
        (make(topics=5), 11, "topics is 5, not a list"),
        (make(topics=[5]), 11, r"topics\[0\] is not a FetchTopic but 5"),
        (make(topics=[Partition()]), 11, r"topics\[0\] is not a FetchTopic but FetchPartition"),
        (
            make(topics=[Topic(), Topic(partitions=[Partition(fetch_offset=2**63)])]),
            11,
            r"topics\[1\].partitions\[0\].fetch_offset is 9223372036854775808, which is not a valid int64",
        ),
        (make(topics=[Topic(topic_id=b"short")]), 17, r"topics\[0\].topic_id is b'short', not the 16 bytes of a uuid"),
        (make(replica_id=1), 17, "replica_id is 1, but this version does not have that field"),
        (
            make(replica_state=FetchRequest.ReplicaState(replica_id=1)),
            4,
            "replica_state is ReplicaState.replica_id=1., but this version does not have that field",
        ),
        (MetadataRequest(topics=[], allow_auto_topic_creation=False), 3, "allow_auto_topic_creation is False, but"),
        (
            CreateTopicsRequest(validate_only=True),
            0,
            "validate_only is True, but this version does not have that field",
        ),
    ],
)
def test_the_field_at_fault_is_named(message: Any, version: int, complaint: str) -> None:
    with pytest.raises(UnwritableMessage, match=f"{type(message).__name__} v{version}: {complaint}"):
        message.encode(version)


def test_unknown_tags_need_a_flexible_version() -> None:
    request = FetchRequest()
    request.unknown_tags = ((5, b""),)
    request.encode(12)
    with pytest.raises(UnwritableMessage, match="unknown_tags are set"):
        request.encode(11)


def test_a_null_that_is_not_the_default_is_not_dropped() -> None:
    """MetadataRequest calls null topics "all of them": to send an empty list instead would change the meaning."""
    with pytest.raises(UnwritableMessage, match="topics must not be None"):
        MetadataRequest(topics=None).encode(0)


def test_records_must_be_bytes_to_be_encoded() -> None:
    partition = FetchResponse.PartitionData(records=[1, 2])
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    with pytest.raises(UnwritableMessage, match="FetchResponse v11"):
        response.encode(11)


def test_an_unwritable_message_has_the_original_error_as_its_cause() -> None:
    with pytest.raises(UnwritableMessage) as caught:
        make(max_wait_ms=2**31).encode(4)
    assert caught.value.__cause__ is not None
