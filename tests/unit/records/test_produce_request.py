"""The records that a Produce request may contain for a partition."""

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.produce_request import check_produce_request, split_produced
from tailrace.records.legacy import encode_message


def build(codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec=codec)
    builder.append(5, b"k", b"v")
    return builder.build()


def test_exactly_one_batch_of_format_2_is_accepted():
    check_produce_request(build(), 3)
    check_produce_request(build() + build()[:-1], 3)  # what is cut short does not count
    check_produce_request(build(Codec.ZSTD), 7)


@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        (b"", 9, ErrorCode.INVALID_RECORD),
        (build() + build(), 9, ErrorCode.INVALID_RECORD),
        (encode_message(1, 0, 5, b"k", b"v"), 9, ErrorCode.INVALID_RECORD),
        (build(Codec.ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (build()[:16] + b"\x05" + build()[17:], 9, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_other_contents_of_a_produce_request_are_refused(data, version, code):
    with pytest.raises(KafkaError) as refused:
        check_produce_request(data, version)
    assert refused.value.code == code


def test_the_error_of_invalid_bytes_names_the_partition():
    with pytest.raises(KafkaError, match="in orders-1"):
        list(split_produced(bytes(80), TopicPartition("orders", 1)))
