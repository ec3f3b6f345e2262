"""Rules for single records, with Java's arithmetic at the ends of time."""

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records.checks.record_rules import RecordFacts, RecordRules, RecordsRefused

NOW = 1_700_000_000_000


def rules(**settings) -> RecordRules:
    return RecordRules(TopicConfig(**settings), NOW, None)


def refused(topic: RecordRules, *records: RecordFacts, append_time: bool = False) -> RecordsRefused:
    with pytest.raises(RecordsRefused) as caught:
        topic.check(list(records), append_time)
    return caught.value


def test_every_refused_record_is_named_by_its_index():
    error = refused(
        rules(cleanup_policy=frozenset({"compact"})),
        RecordFacts(0, 0, NOW, False),
        RecordFacts(1, 1, NOW, True),
        RecordFacts(2, 2, NOW, False),
    )
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [0, 2]


def test_with_one_invalid_timestamp_the_error_is_invalid_timestamp():
    compacted = rules(cleanup_policy=frozenset({"compact"}))
    error = refused(compacted, RecordFacts(0, 0, NOW, False), RecordFacts(1, 1, NOW + 10**9, True))
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == 2


@pytest.mark.parametrize("timestamp", [NOW - 100, NOW, NOW + 200, -1])
def test_timestamp_bounds_are_inclusive_and_minus_one_is_always_accepted(timestamp):
    topic = rules(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=200)
    topic.check([RecordFacts(0, 0, timestamp, True)], False)


@pytest.mark.parametrize("timestamp", [NOW - 101, NOW + 201, 0, -2, LONG_MAX, -(2**63)])
def test_timestamps_outside_are_refused(timestamp):
    topic = rules(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=200)
    assert refused(topic, RecordFacts(0, 0, timestamp, True)).code == ErrorCode.INVALID_TIMESTAMP
    earliest, latest = topic.timestamp_bounds(None)
    assert not earliest <= timestamp <= latest


def test_a_timestamp_difference_overflows_like_in_java():
    """The smallest long is so long ago that Java's difference turns positive again."""
    unbounded = rules(message_timestamp_after_max_ms=LONG_MAX)
    assert unbounded.timestamp_bounds(None)[0] > -(2**63)  # worth a look,
    unbounded.check([RecordFacts(0, 0, -(2**63), True)], False)  # but Kafka takes it
    assert refused(rules(), RecordFacts(0, 0, -(2**63), True)).code == ErrorCode.INVALID_TIMESTAMP


def test_a_producer_must_leave_append_time_to_the_broker():
    topic = rules(message_timestamp_type="LogAppendTime")
    topic.check([RecordFacts(0, 0, 5, True)], False)
    assert refused(topic, RecordFacts(0, 0, 5, True), append_time=True).code == ErrorCode.INVALID_TIMESTAMP
    assert topic.timestamp_bounds(5) == (LONG_MAX, -(2**63))
    assert topic.timestamp_bounds(None) == (-(2**63), LONG_MAX)


def test_the_timestamp_of_a_batch_that_claims_append_time_counts_for_all_its_records():
    topic = rules(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=200)
    assert topic.timestamp_bounds(NOW) == (-(2**63), LONG_MAX)
    assert topic.timestamp_bounds(NOW + 201) == topic.timestamp_bounds(-1) == (LONG_MAX, -(2**63))


def test_a_refusal_names_at_most_1000_records():
    facts = [RecordFacts(index, index, NOW, False) for index in range(5_000)]
    error = refused(rules(cleanup_policy=frozenset({"compact"})), *facts)
    assert len(error.record_errors) == 1_000
    assert "1000 or more records refused" in str(error)
