"""Records of the metadata log."""

from __future__ import annotations

import pytest

from tailrace.protocol.codegen.schema import index
from tailrace.protocol.errors import MalformedMessage, UnknownRecordType
from tailrace.protocol.internal_records.metadata_frames import decode_frame, encode_frame, frame_to_dict
from tailrace.protocol.messages import FeatureLevelRecord, PartitionRecord, RemotePartitionDeleteMetadataRecord
from tailrace.protocol.registry import message_class
from tests.unit.protocol.random_messages import random_message

# As Kafka 4.3.1 wrote it when it formatted a directory.
FEATURE_LEVEL = b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"


def test_a_record_written_by_kafka_is_decoded() -> None:
    name, version, message = decode_frame(FEATURE_LEVEL)
    assert (name, version) == ("FeatureLevelRecord", 0)
    assert message == FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert encode_frame(message, 0) == FEATURE_LEVEL


def test_the_json_of_a_record_contains_its_type() -> None:
    assert frame_to_dict(decode_frame(FEATURE_LEVEL)) == {
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": "metadata.version", "featureLevel": 30},
    }


def test_every_record_is_read_as_written() -> None:
    for family in ("metadata", "remote_log"):
        for name in index()["families"][family]:
            for version in message_class(name).SCHEMA.versions:
                message = random_message(name, version, 1, unknown_tags=True)
                assert decode_frame(encode_frame(message, version), family) == (name, version, message)


def test_families_have_their_own_numbers() -> None:
    frame = encode_frame(RemotePartitionDeleteMetadataRecord(), 0)
    assert decode_frame(frame, "remote_log").name == "RemotePartitionDeleteMetadataRecord"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "ends within a varint"),
        (b"\x00\x0c\x00", "has frame version 0, not 1"),
        (b"\x02\x0c\x00", "has frame version 2, not 1"),
        (b"\x01", "ends within a varint"),
        (b"\x01\x0c", "ends within a varint"),
        (b"\x01\x0c\x00\x11meta", "name is longer than what follows"),
        (FEATURE_LEVEL + b"!", "is followed by 1 bytes"),
    ],
)
def test_bytes_that_are_not_a_record_are_malformed(value: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode_frame(value)


def test_a_record_of_a_newer_version_is_an_unknown_record_type() -> None:
    with pytest.raises(UnknownRecordType, match="number 6 is unknown"):
        decode_frame(b"\x01\x06\x00")
    with pytest.raises(UnknownRecordType, match="PartitionRecord: version 99 is unknown"):
        decode_frame(b"\x01\x03\x63" + PartitionRecord().encode(0))
