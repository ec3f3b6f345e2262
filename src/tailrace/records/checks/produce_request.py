"""The rules for the records field of a Produce request, checked before the batches are decoded."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import (
    CODEC_MASK,
    CODEC_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    PREFIX,
    Buffer,
    Codec,
    CorruptBatch,
    RecordBatch,
)
from tailrace.records.conversion import HeaderCutShort, split_any
from tailrace.records.legacy import MIN_SIZE, Message

FIRST_VERSION_WITH_ZSTD = 7


def split_produced(data: Buffer, partition: TopicPartition | None = None) -> Iterator[RecordBatch | Message]:
    """Yield the batches and messages in `data`. Raise KafkaError for other bytes. An incomplete last batch is
    left out."""
    try:
        yield from split_any(data)
    except HeaderCutShort as error:
        # Kafka reads the last offset before it checks the size, and fails with an unexpected error.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{error} in {partition}") from error
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{error} in {partition}") from error


def check_first_batch(data: Buffer) -> None:
    """Raise KafkaError if the first batch has an impossible length or magic."""
    if len(data) <= MAGIC_POSITION:
        return
    size = PREFIX.unpack_from(data)[1] + LOG_OVERHEAD
    magic = data[MAGIC_POSITION]
    if size < MIN_SIZE[0]:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes is too small")
    if magic > 2:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"unknown magic {magic}")


def has_unknown_codec(data: Buffer) -> bool:
    """Return True if records begin with a whole batch of format 2 whose codec does not exist."""
    return (
        len(data) >= HEADER_SIZE
        and data[MAGIC_POSITION] == 2
        and data[CODEC_POSITION] & CODEC_MASK > max(Codec)
        and PREFIX.unpack_from(data)[1] + LOG_OVERHEAD <= len(data)
    )


def check_produce_request(data: Buffer, version: int) -> None:
    """Check the records of one partition in a Produce request of version 3 or later: exactly one batch, of format 2."""
    if (
        version >= FIRST_VERSION_WITH_ZSTD
        and len(data) >= HEADER_SIZE
        and data[MAGIC_POSITION] == 2
        and PREFIX.unpack_from(data)[1] + LOG_OVERHEAD == len(data)
    ):
        return  # exactly one batch, and of format 2
    request = f"a Produce request of version {version}"
    batches = split_produced(data)
    first = next(batches, None)
    if first is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{request} needs one batch per partition, but a partition has none")
    if first.magic != 2:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{request} takes batches of format 2, not {first.magic}")
    if version < FIRST_VERSION_WITH_ZSTD and first.attributes & CODEC_MASK == Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{request} cannot contain zstd batches; use version 7 or later"
        )
    if next(batches, None) is not None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{request} takes exactly one batch per partition")
