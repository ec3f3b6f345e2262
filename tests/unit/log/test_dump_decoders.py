"""Records of the brokers' own topics, and those that only claim to be."""

from __future__ import annotations

from tailrace.log.inspect.dump_decoders import control_fields, decoder_for
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.protocol.internal_records.metadata_frames import encode_frame
from tailrace.protocol.messages import OffsetCommitKey, OffsetCommitValue, TopicRecord
from tailrace.records.control_records import ControlType, control_key
from tailrace.records.record import Record, TimestampType


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(5, 1000, TimestampType.CREATE_TIME, key, value)


def test_records_of_committed_offsets_are_decoded() -> None:
    decode = decoder_for("__consumer_offsets")
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
    value = encode_value(OffsetCommitValue(offset=17, metadata="m", commit_timestamp=9), 3)
    fields = decode(record(key, value))
    assert fields["key"] == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 3}}
    assert fields["payload"]["data"]["offset"] == 17
    assert decode(record(key, None))["payload"] == "<DELETE>"


def test_a_record_that_cannot_be_decoded_is_reported_and_the_dump_continues() -> None:
    for topic in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
        decode = decoder_for(topic)
        assert "skipping" in decode(record(None, b"x"))["key"]
        assert "skipping" in decode(record(b"\x7f\xff", b"x"))["key"]
        assert "skipping" in decode(record(b"\x00", b""))["key"]
        assert "skipping" in decode(record(b"\x00\x00\xff\xff\xff", b"\x00"))["key"]
    for topic in ("__cluster_metadata", "__remote_log_metadata"):
        for value in (None, b"", b"\x09", b"\x01\xff\xff\x03", b"\x01\x02\x00\xff"):
            assert "skipping" in decoder_for(topic)(record(None, value))["payload"]


def test_records_of_the_metadata_log_are_decoded() -> None:
    frame = encode_frame(TopicRecord(name="t", topic_id=bytes(16)), 0)
    assert decoder_for("__cluster_metadata")(record(None, frame))["payload"] == {
        "type": "TOPIC_RECORD",
        "version": 0,
        "data": {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA"},
    }


def test_control_records() -> None:
    assert control_fields(record(control_key(ControlType.ABORT), b"\0\0\0\0\0\7")) == {
        "endTxnMarker": "ABORT",
        "coordinatorEpoch": 7,
    }
    assert control_fields(record(b"\0\0\0\x63", b"")) == {"controlType": "UNKNOWN(99)"}
    assert "cannot be decoded" in control_fields(record(control_key(ControlType.KRAFT_VOTERS), b"\0"))["KRaftVoters"]
