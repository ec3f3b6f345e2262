from __future__ import annotations

import pickle

import pytest

from tailrace.client.errors import (
    AnswerTimedOut,
    ClientError,
    ConnectionLost,
    OffsetOutOfRange,
    Refused,
    UnknownBroker,
    UnknownPartition,
    UnknownTopic,
    Unreachable,
    code_text,
)
from tailrace.client.network.address import Address
from tailrace.client.producing.producer import NotDelivered, Produced
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition

HERE = Address("kafka", 9092)
HERE_0, HERE_1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    "error",
    [
        Unreachable(HERE, "connection refused", 3, is_transient=False),
        ConnectionLost(HERE, "Fetch", "reset"),
        AnswerTimedOut(HERE, "Fetch", 1.5),
        UnknownTopic("t"),
        UnknownPartition("t", 3, 2),
        UnknownBroker(7, [1, 2]),
        Refused("t-0", ErrorCode.NOT_LEADER_OR_FOLLOWER, "no"),
        OffsetOutOfRange("t-0", 5, 10),
        NotDelivered(
            {TopicPartition("t", 0): UnknownTopic("t")}, {TopicPartition("t", 1): Produced(TopicPartition("t", 1), 5)}
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_can_be_pickled(error: ClientError) -> None:
    """Errors are pickled between Spark tasks and the driver."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert (copy.is_retriable, copy.is_ambiguous) == (error.is_retriable, error.is_ambiguous)
    assert set(vars(copy)) == set(vars(error))


def test_a_refusal_has_a_message_and_the_name_of_the_error() -> None:
    assert code_text(ErrorCode.POLICY_VIOLATION, "Not\nthat. ") == "Not that (POLICY_VIOLATION)"
    assert code_text(ErrorCode.MESSAGE_TOO_LARGE) == (
        "the batch is larger than max.message.bytes allows (MESSAGE_TOO_LARGE)"
    )
    assert code_text(ErrorCode.ELECTION_NOT_NEEDED) == "ELECTION_NOT_NEEDED"
    assert code_text(9999) == "error 9999"


def test_retriable_and_ambiguous_errors_are_marked() -> None:
    assert Refused("t", ErrorCode.NOT_LEADER_OR_FOLLOWER).is_retriable
    assert not Refused("t", ErrorCode.NOT_LEADER_OR_FOLLOWER).is_ambiguous
    assert Refused("t", ErrorCode.REQUEST_TIMED_OUT).is_ambiguous
    assert not Refused("t", ErrorCode.TOPIC_ALREADY_EXISTS).is_retriable
    assert not Refused("t", 9999).is_retriable
