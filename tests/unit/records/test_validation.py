"""Produce validation by example; tests/property compares it with Kafka's own."""

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks import validation
from tailrace.records.checks.record_rules import RecordsRefused
from tailrace.records.checks.validation import Origin
from tailrace.records.codecs.compression import compress
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker
from tailrace.records.legacy import build_messages, encode_message
from tailrace.records.record import Record, TimestampType, iter_records
from tests.support.validated import ValidatedRecords, validate_produced

NOW = 1_700_000_000_000
ORDERS = TopicPartition("orders", 3)
COMPACTED = TopicConfig(cleanup_policy=frozenset({"compact"}))


def build(*timestamps: int, key: bytes | None = b"k", **options) -> bytes:
    builder = BatchBuilder(**options)
    for timestamp in timestamps or (NOW,):
        builder.append(timestamp, key, b"v")
    return builder.build()


def validate(data, config: TopicConfig | None = None, origin: Origin = Origin.CLIENT, **how) -> ValidatedRecords:
    return validate_produced(
        data,
        config=config or TopicConfig(),
        base_offset=500,
        leader_epoch=7,
        now_ms=NOW,
        origin=origin,
        partition=ORDERS,
        **how,
    )


def refusal(*arguments, **options) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        validate(*arguments, **options)
    return refused.value


def with_checksum(data: bytes | bytearray) -> bytearray:
    data = bytearray(data)
    data[17:21] = RecordBatch(memoryview(data)).computed_crc().to_bytes(4, "big")
    return data


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_in_the_topics_codec_is_changed_in_place(codec):
    data = bytearray(build(NOW - 5, NOW - 9, codec=codec))
    payload = data[61:]
    result = validate(data)
    (batch,) = result.batches
    batch.check()
    assert result.data.obj is data
    assert data[61:] == payload
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (500, 501, 7)
    assert (result.max_timestamp, result.log_append_time_ms, result.records_converted) == (NOW - 5, -1, 0)


def test_a_batch_that_is_kept_as_sent_passes_the_full_check_unchanged():
    assert validation.is_kept_as_sent(memoryview(build(NOW, NOW - 5)), TopicConfig(), NOW)
    quick = validate(build(NOW, NOW - 5))
    thorough = validate(build(NOW, NOW - 5), thorough=True)
    assert bytes(quick.data) == bytes(thorough.data)
    assert quick[2:] == thorough[2:] == (500, 501, NOW, -1, 0, False)


def test_immutable_bytes_are_copied_first():
    data = build()
    assert validate(data).batches[0].base_offset == 500
    assert data == build()


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_in_another_codec_is_built_again(target):
    source = Codec.NONE if target != "uncompressed" else Codec.GZIP
    data = build(NOW, NOW - 4, codec=source, producer_id=1, producer_epoch=2, base_sequence=3, transactional=True)
    result = validate(data, TopicConfig(compression_type=target))
    (batch,) = result.batches
    batch.check()
    assert batch.codec.name.lower() == {"uncompressed": "none"}.get(target, target)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional) == (1, 2, 3, True)
    assert [(record.offset, record.timestamp) for record in iter_records(batch)] == [(500, NOW), (501, NOW - 4)]
    assert result.size_may_have_changed
    assert result.records_converted == 2


def test_the_topics_compression_level_is_used():
    data = build(*range(NOW - 500, NOW))
    weak, strong = (
        validate(data, TopicConfig(compression_type="gzip", compression_gzip_level=level)).data for level in (1, 9)
    )
    assert len(weak) > len(strong)


def test_a_batch_built_again_with_gaps_gets_offsets_without():
    builder = BatchBuilder(codec=Codec.GZIP)
    builder.append(NOW, b"k", b"v")
    builder.append(NOW, b"k", b"v", offset=2)
    data = bytearray(builder.build())
    data[23:27] = (1).to_bytes(4, "big")
    result = validate(with_checksum(data), TopicConfig(compression_type="zstd"))
    assert [record.offset for record in iter_records(result.batches[0])] == [500, 501]
    assert refusal(with_checksum(data)).code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_log_append_time_overrides_the_producers_timestamps():
    config = TopicConfig(message_timestamp_type="LogAppendTime")
    result = validate(build(5, 6), config)
    (batch,) = result.batches
    batch.check()
    assert (result.max_timestamp, result.log_append_time_ms) == (NOW, NOW)
    assert {record.timestamp for record in iter_records(batch)} == {NOW}


def test_a_wrong_max_timestamp_is_corrected():
    data = bytearray(build(NOW - 5))
    data[35:43] = (NOW + 10**9).to_bytes(8, "big")
    result = validate(with_checksum(data))
    result.batches[0].check()
    assert result.batches[0].max_timestamp == NOW - 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({23: b"\xff\xff\xff\xff"}, "offsets 0..-1"),
        ({23: (4).to_bytes(4, "big")}, "1 records for offsets 0..4"),
        ({57: bytes(4)}, "record count of 0"),
        ({57: (2).to_bytes(4, "big"), 23: (1).to_bytes(4, "big")}, "record 1 is broken"),
        ({22: b"\x20"}, "control batch from a client"),
        ({43: bytes(8), 53: b"\xff\xff\xff\xfe"}, "sequence number -2"),
        ({0: (3).to_bytes(8, "big")}, "must be 0, not 3"),
    ],
)
def test_a_client_batch_with_contradicting_fields_is_refused(change, words):
    data = bytearray(build())
    for position, value in change.items():
        data[position : position + len(value)] = value
    error = refusal(with_checksum(data))
    assert error.code == ErrorCode.INVALID_RECORD
    assert words in str(error)
    assert "orders-3" in str(error)


def test_a_wrong_checksum_or_an_unknown_magic_is_corrupt():
    data = bytearray(build())
    data[-1] ^= 1
    assert refusal(data).code == ErrorCode.CORRUPT_MESSAGE
    data[16] = 3
    assert refusal(data).code == ErrorCode.CORRUPT_MESSAGE
    data[8:12] = (5).to_bytes(4, "big")
    assert refusal(data).code == ErrorCode.CORRUPT_MESSAGE


def test_more_than_one_batch_is_refused():
    assert refusal(build() + build()).code == ErrorCode.INVALID_RECORD


def test_an_incomplete_last_batch_is_left_out():
    result = validate(build() + build()[:-1])
    assert [batch.base_offset for batch in result.batches] == [500]
    assert len(result.data) == len(build())
    assert validate(b"").batches == []
    assert validate(build()[:50]).batches == []


def test_batches_larger_than_allowed_are_refused_before_and_after_compression():
    noise = bytes((index * index * 7919 >> 3) & 0xFF for index in range(3000))
    builder = BatchBuilder(codec=Codec.GZIP)
    builder.append(NOW, b"k", bytes(3000))
    small = builder.build()
    config = TopicConfig(max_message_bytes=1000, compression_type="uncompressed")
    assert refusal(small, config).code == ErrorCode.MESSAGE_TOO_LARGE
    builder = BatchBuilder()
    builder.append(NOW, b"k", noise)
    assert refusal(builder.build(), TopicConfig(max_message_bytes=1000)).code == ErrorCode.MESSAGE_TOO_LARGE


def test_records_that_cannot_be_decompressed_are_refused():
    data = bytearray(build(codec=Codec.GZIP))
    data[61] = 0
    assert refusal(with_checksum(data)).code == ErrorCode.UNKNOWN_SERVER_ERROR
    data[22] = 6
    assert refusal(with_checksum(data)).code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_compacted_topic_accepts_only_records_with_keys_also_tombstones(codec):
    error = refusal(build(NOW, NOW, key=None, codec=codec), COMPACTED)
    assert isinstance(error, RecordsRefused)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [0, 1]
    builder = BatchBuilder(codec=codec)
    builder.append(NOW, b"k", None)
    assert validate(builder.build(), COMPACTED).batches
    assert validate(build(key=None, codec=codec)).batches


def test_timestamps_outside_the_topics_bounds_are_refused_one_by_one():
    config = TopicConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    assert validate(build(NOW - 1000, NOW + 500, -1), config).batches
    error = refusal(build(NOW - 1001, NOW, NOW + 501, -1), config)
    assert isinstance(error, RecordsRefused)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 2]
    assert f"[{NOW - 1000}, {NOW + 500}]" in error.record_errors[0][1]
    assert refusal(build(NOW + 3_600_001)).code == ErrorCode.INVALID_TIMESTAMP  # Kafka's default: an hour ahead


def test_a_producer_cannot_claim_append_time():
    data = build(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=NOW)
    error = refusal(data, TopicConfig(message_timestamp_type="LogAppendTime"))
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert not validate(data).batches[0].is_log_append_time  # a create-time topic just takes the timestamp


def test_control_batches_of_coordinators_are_not_compressed():
    marker = build_end_marker(
        EndTransactionMarker(ControlType.COMMIT, 1), timestamp=NOW, producer_id=4, producer_epoch=0
    )
    for compression in ("producer", "zstd"):
        (batch,) = validate(marker, TopicConfig(compression_type=compression), Origin.COORDINATOR).batches
        assert (batch.codec, batch.is_control, batch.base_offset) == (Codec.NONE, True, 500)


def test_batches_of_the_raft_leader_keep_their_offsets_and_epochs():
    data = build(base_offset=500, leader_epoch=7) + build(base_offset=501, leader_epoch=7)
    result = validate(data, origin=Origin.RAFT_LEADER)
    assert bytes(result.data) == data
    assert [batch.base_offset for batch in result.batches] == [500, 501]
    assert refusal(build(base_offset=500, leader_epoch=6), origin=Origin.RAFT_LEADER).code == ErrorCode.INVALID_RECORD
    for offsets in ((499,), (500, 500)):
        low = b"".join(build(base_offset=offset, leader_epoch=7) for offset in offsets)
        assert refusal(low, origin=Origin.RAFT_LEADER).code == ErrorCode.UNKNOWN_SERVER_ERROR


# --- old formats ---


def messages(*timestamps: int, magic: int = 1, codec: Codec = Codec.NONE, key: bytes | None = b"k") -> bytes:
    kind = TimestampType.CREATE_TIME
    return build_messages(
        [Record(offset, timestamp, kind, key, b"v") for offset, timestamp in enumerate(timestamps)],
        magic=magic,
        codec=codec,
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_become_one_batch_in_their_codec(magic, codec):
    result = validate(messages(NOW - 1, NOW, magic=magic, codec=codec))
    (batch,) = result.batches
    batch.check()
    assert (batch.codec, batch.base_offset, batch.leader_epoch) == (codec, 500, 7)
    assert [record.timestamp for record in iter_records(batch)] == ([NOW - 1, NOW] if magic else [-1, -1])
    assert (result.records_converted, result.size_may_have_changed) == (2, True)


def test_messages_of_old_formats_are_checked_by_the_same_rules():
    assert refusal(messages(NOW, codec=Codec.GZIP) * 2).code == ErrorCode.INVALID_RECORD
    assert refusal(messages(NOW) + messages(NOW, magic=0)).code == ErrorCode.INVALID_RECORD
    assert refusal(messages(NOW) + build()).code == ErrorCode.INVALID_RECORD
    assert refusal(messages(NOW, key=None), COMPACTED).code == ErrorCode.INVALID_RECORD
    assert refusal(messages(NOW + 10**10)).code == ErrorCode.INVALID_TIMESTAMP
    broken = bytearray(messages(NOW))
    broken[-1] ^= 1
    assert refusal(broken).code == ErrorCode.CORRUPT_MESSAGE


def test_each_message_inside_a_wrapper_is_checked():
    inner = bytearray(encode_message(1, 0, NOW, b"k", b"v"))
    inner[-1] ^= 1
    wrapped = encode_message(1, 0, NOW, None, compress(Codec.GZIP, inner), codec=Codec.GZIP)
    assert refusal(wrapped).code == ErrorCode.CORRUPT_MESSAGE
    inner = encode_message(0, 0, -1, b"k", b"v")
    wrapped = encode_message(1, 0, NOW, None, compress(Codec.GZIP, inner), codec=Codec.GZIP)
    error = refusal(wrapped)
    assert error.code == ErrorCode.INVALID_RECORD
    assert isinstance(error, RecordsRefused)
    assert refusal(encode_message(1, 0, NOW, None, b"rubbish", codec=Codec.GZIP)).code == (
        ErrorCode.UNKNOWN_SERVER_ERROR
    )
