"""Kafka's error codes, and the exception that carries one."""

from __future__ import annotations

from tailrace.model.errors import ErrorCode, KafkaError


def test_codes_are_kafkas_numbers() -> None:
    assert ErrorCode.UNKNOWN_SERVER_ERROR == -1
    assert ErrorCode.NONE == 0
    assert ErrorCode.OFFSET_OUT_OF_RANGE == 1
    assert ErrorCode.CORRUPT_MESSAGE == 2
    assert ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER == 45
    assert ErrorCode.FENCED_LEADER_EPOCH == 74
    assert ErrorCode.UNKNOWN_TOPIC_ID == 100
    assert ErrorCode.INCONSISTENT_TOPIC_ID == 103


def test_codes_are_unique_and_complete() -> None:
    numbers = [code.value for code in ErrorCode]
    assert len(numbers) == len(ErrorCode.__members__)
    assert sorted(numbers) == list(range(-1, max(numbers) + 1))


def test_an_error_without_a_message_shows_its_code() -> None:
    error = KafkaError(ErrorCode.CORRUPT_MESSAGE, "checksum does not match")
    assert (error.code, str(error)) == (ErrorCode.CORRUPT_MESSAGE, "checksum does not match")
    assert str(KafkaError(ErrorCode.CORRUPT_MESSAGE)) == "CORRUPT_MESSAGE"
