"""What can go wrong between us and a cluster: one family, an exception per situation, each one sentence.

`is_retriable` says whether asking again may help. An error that leaves open whether the request was carried out has
`is_ambiguous`: asking again may then do it twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tailrace.client.network.address import Address
from tailrace.model.errors import ErrorCode

# What passes by itself, or once metadata is fetched again.
_RETRIABLE = frozenset({
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LISTENER_NOT_FOUND,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
})  # fmt: skip
# Of these, the ones that may follow after the broker has done (part of) what it was asked for.
_AMBIGUOUS = frozenset({
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
})  # fmt: skip

# For errors that brokers send without words of their own.
_WORDS: dict[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed, and its log says why",
    ErrorCode.CORRUPT_MESSAGE: "the batch arrived damaged",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the broker does not have it",
    ErrorCode.LEADER_NOT_AVAILABLE: "it has no leader",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "its leader has changed",
    ErrorCode.REQUEST_TIMED_OUT: "it was not done in time",
    ErrorCode.MESSAGE_TOO_LARGE: "the batch is larger than max.message.bytes allows",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the name is not allowed",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "it was written while too few replicas were in sync",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this is not allowed with the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this is not allowed with the cluster",
    ErrorCode.INVALID_TIMESTAMP: "a timestamp is further from now than the topic allows",
    ErrorCode.POLICY_VIOLATION: "the topic's policy forbids it",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed",
    ErrorCode.INVALID_RECORD: "a record is not what the topic takes",
}


class ClientError(Exception):
    """Anything that keeps a cluster from giving what was asked of it."""

    is_retriable = False
    is_ambiguous = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel between processes; the default would call __init__ with the sentence alone.
        return _restored, (type(self), self.args, self.__dict__)


class InvalidAddress(ClientError):
    """A bootstrap address that is none."""


class UnsupportedSecurity(ClientError):
    """Security settings that are incomplete or not spoken here, or not what the broker wants."""


class AuthenticationFailed(ClientError):
    """The broker does not let us in, or is not who it should be."""


class Unreachable(ClientError):
    """No connection could be made; nothing was sent."""

    def __init__(self, address: Address, reason: str, node_id: int | None = None, *, is_passing: bool = True) -> None:
        if node_id is None:
            super().__init__(f"no broker can be reached at {address}: {reason}")
        else:
            super().__init__(f"broker {node_id} says that it listens on {address}, which cannot be reached: {reason}")
        self.address = address
        self.reason = reason
        self.is_first = node_id is None  # where we were told to begin
        self.is_retriable = is_passing


class ConnectionLost(ClientError):
    """The connection broke while a request was under way."""

    is_retriable = True
    is_ambiguous = True

    def __init__(self, address: Address, what: str, reason: str) -> None:
        super().__init__(f"the connection to {address} was lost during {what}: {reason}")
        self.address = address


class AnswerTimedOut(ClientError):
    """The broker took the request and did not answer in time."""

    is_retriable = True
    is_ambiguous = True

    def __init__(self, address: Address, what: str, seconds: float) -> None:
        super().__init__(f"{address} did not answer {what} within {seconds:.3g} s")
        self.address = address


class InvalidAnswer(ClientError):
    """Bytes that are no answer to what was asked: a broken broker, or no broker at all."""


class UnsupportedByBroker(ClientError):
    """The broker is too old, or too new, for what was asked."""


class UnknownTopic(ClientError):
    """There is no such topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic!r}")
        self.topic = topic


class UnknownPartition(ClientError):
    """The topic is there and has fewer partitions."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(f"{topic} has no partition {partition}: there are {count}, counted from 0")
        self.topic = topic
        self.partition = partition


class UnknownBroker(ClientError):
    """The cluster has no broker with this number, or none that is up."""

    def __init__(self, node_id: int, known: Iterable[int]) -> None:
        super().__init__(f"there is no broker {node_id} among {', '.join(map(str, sorted(known))) or 'none'}")
        self.node_id = node_id


class Refused(ClientError):
    """The broker answered with an error code."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        super().__init__(f"{subject}: {code_text(code, message)}")
        self.subject = subject
        self.code = code
        self.message = message
        self.is_retriable = code in _RETRIABLE
        self.is_ambiguous = code in _AMBIGUOUS


class OffsetOutOfRange(Refused):
    """The offset asked for is not, or no longer, in the log."""

    def __init__(self, subject: str, offset: int, log_start_offset: int) -> None:
        start = f"; the log starts at {log_start_offset}" if log_start_offset >= 0 else ""
        super().__init__(subject, ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is out of range{start}")
        self.offset = offset
        self.log_start_offset = log_start_offset


class EndNotReached(ClientError):
    """Records up to an offset were asked for, and the log does not show that many."""


def _restored(kind: type[ClientError], arguments: tuple[Any, ...], state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def code_name(code: int) -> str:
    """The error's name; a number that is new to us stands for itself."""
    known = ErrorCode(code)
    return known.name if known == code else f"error {code}"


def code_text(code: int, message: str | None = None) -> str:
    """The broker's own words for the error where it gave some, or else ours; always its name."""
    words = " ".join((message or "").split()).rstrip(".") or _WORDS.get(code)
    return f"{words} ({code_name(code)})" if words else code_name(code)
