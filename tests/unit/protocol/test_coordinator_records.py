"""Keys and values of the coordinators' topics."""

from __future__ import annotations

import pytest

from tailrace.protocol.codegen.schema import index
from tailrace.protocol.errors import MalformedMessage, UnknownRecordType
from tailrace.protocol.internal_records.coordinator_records import (
    FAMILIES,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    key_to_dict,
    value_to_dict,
)
from tailrace.protocol.messages import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tailrace.protocol.registry import record_class
from tests.unit.protocol.random_messages import random_message

KEY = b"\0\1\0\5group\0\5topic\0\0\0\3"
VALUE = b"\0\3" + b"\0\0\0\0\0\0\0\x2a" + b"\0\0\0\7" + b"\0\4meta" + b"\0\0\0\0\0\0\3\xe8"


def test_a_committed_offset_is_decoded() -> None:
    key = decode_key("group", KEY)
    assert key == ("OffsetCommitKey", 0, OffsetCommitKey(group="group", topic="topic", partition=3))
    value = decode_value("group", key, VALUE)
    expected = OffsetCommitValue(offset=42, leader_epoch=7, metadata="meta", commit_timestamp=1000)
    assert value == ("OffsetCommitValue", 3, expected)
    assert encode_key(key.message) == KEY
    assert encode_value(value.message, 3) == VALUE


def test_the_json_of_records_equals_kafkas() -> None:
    key = decode_key("group", KEY)
    assert key_to_dict(key) == {"type": "1", "data": {"group": "group", "topic": "topic", "partition": 3}}
    assert value_to_dict(decode_value("group", key, VALUE)) == {
        "version": "3",
        "data": {"offset": 42, "leaderEpoch": 7, "metadata": "meta", "commitTimestamp": 1000},
    }


def test_every_record_is_read_as_written() -> None:
    for family in FAMILIES.values():
        for number in map(int, index()["records"][f"{family}/key"]):
            key_class, value_class = (record_class(family, kind, number) for kind in ("key", "value"))
            assert key_class is not None
            assert value_class is not None
            key = random_message(key_class.SCHEMA.name, 0, 1)
            decoded = decode_key(family, encode_key(key))
            assert decoded == (key_class.SCHEMA.name, 0, key)
            for version in value_class.SCHEMA.versions:
                value = random_message(value_class.SCHEMA.name, version, 1, unknown_tags=True)
                again = decode_value(family, decoded, encode_value(value, version))
                assert again == (value_class.SCHEMA.name, version, value)


@pytest.mark.parametrize("subscription", [b"", b"\0", b"\0\1\2", b"\0\x63\0\0\0\0", b"\xff\xff"])
def test_a_subscription_that_cannot_be_decoded_stays_bytes(subscription: bytes) -> None:
    """A client wrote it, in its own protocol, and may have written anything."""
    member = GroupMetadataValue.MemberMetadata(member_id="m", subscription=subscription, assignment=b"")
    value = encode_value(GroupMetadataValue(protocol_type="consumer", members=[member]), 3)
    key = decode_key("group", encode_key(GroupMetadataKey(group="g")))
    reported = value_to_dict(decode_value("group", key, value))["data"]["members"][0]
    assert isinstance(reported["subscription"], str)


def test_a_subscription_is_decoded_for_consumers_only() -> None:
    subscription = b"\0\1" + ConsumerProtocolSubscription(topics=["t"]).encode(1)
    key = decode_key("group", encode_key(GroupMetadataKey(group="g")))
    reported = {}
    for protocol in ("consumer", "connect"):
        member = GroupMetadataValue.MemberMetadata(member_id="m", subscription=subscription, assignment=b"")
        value = encode_value(GroupMetadataValue(protocol_type=protocol, members=[member]), 3)
        reported[protocol] = value_to_dict(decode_value("group", key, value))["data"]["members"][0]["subscription"]
    assert reported == {
        "consumer": {"topics": ["t"], "userData": None, "ownedPartitions": []},
        "connect": "AAEAAAABAAF0/////wAAAAA=",
    }


def test_a_key_of_a_newer_version_is_an_unknown_record_type() -> None:
    with pytest.raises(UnknownRecordType, match="number 99 is unknown"):
        decode_key("group", b"\0\x63")
    with pytest.raises(UnknownRecordType, match="OffsetCommitValue: version 99 is unknown"):
        decode_value("group", decode_key("group", KEY), b"\0\x63")


@pytest.mark.parametrize("end", range(len(KEY)))
def test_a_key_that_ends_too_early_is_malformed(end: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_key("group", KEY[:end])


@pytest.mark.parametrize("end", range(len(VALUE)))
def test_a_value_that_ends_too_early_is_malformed(end: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_value("group", decode_key("group", KEY), VALUE[:end])
