"""Errors of the client: ClientError and one subclass per situation. The message is one sentence.

`is_retriable` is True if a retry may succeed. `is_ambiguous` is True if the request may have been carried out, so that
a retry may carry it out twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from tailrace.client.network.address import Address
from tailrace.model.errors import ErrorCode

T = TypeVar("T")

# Transient errors, and errors that a metadata refresh resolves.
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
# Retriable errors after which the broker may have carried out the request, at least in part.
_AMBIGUOUS = frozenset({
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
})  # fmt: skip

# Messages for errors that brokers send without a message.
_MESSAGES: dict[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed; see its log",
    ErrorCode.CORRUPT_MESSAGE: "the broker received a damaged batch",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the broker does not host it",
    ErrorCode.LEADER_NOT_AVAILABLE: "it has no leader",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "its leader has changed",
    ErrorCode.REQUEST_TIMED_OUT: "the broker did not complete the request in time",
    ErrorCode.MESSAGE_TOO_LARGE: "the batch is larger than max.message.bytes allows",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the name is not allowed",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas requires",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "the batch was written while too few replicas were in sync",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the operation is not allowed on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the operation is not allowed on the group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the operation is not allowed on the transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the operation is not allowed on the cluster",
    ErrorCode.INVALID_TIMESTAMP: "a timestamp is further from now than the topic allows",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed",
    ErrorCode.INVALID_RECORD: "a record is invalid for the topic",
}


class ClientError(Exception):
    """The base class of all errors of the client."""

    is_retriable = False
    is_ambiguous = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are pickled between processes. The default would call __init__ with the message only.
        return _restored, (type(self), self.args, self.__dict__)


class InvalidAddress(ClientError):
    """A malformed bootstrap address."""


class UnsupportedSecurity(ClientError):
    """Security settings that are incomplete, unsupported, or different from those of the broker."""


class AuthenticationFailed(ClientError):
    """The broker refuses the client's credentials, or cannot prove its own identity."""


class Unreachable(ClientError):
    """No connection could be made; nothing was sent."""

    def __init__(self, address: Address, reason: str, node_id: int | None = None, *, is_transient: bool = True) -> None:
        if node_id is None:
            super().__init__(f"no broker can be reached at {address}: {reason}")
        else:
            super().__init__(f"broker {node_id} cannot be reached at {address}, the address it advertises: {reason}")
        self.address = address
        self.reason = reason
        self.is_first = node_id is None  # a bootstrap address
        self.is_retriable = is_transient


class ConnectionLost(ClientError):
    """The connection broke during a request."""

    is_retriable = True
    is_ambiguous = True

    def __init__(self, address: Address, what: str, reason: str) -> None:
        super().__init__(f"the connection to {address} was lost during {what}: {reason}")
        self.address = address


class AnswerTimedOut(ClientError):
    """The broker received the request and did not respond in time."""

    is_retriable = True
    is_ambiguous = True

    def __init__(self, address: Address, what: str, seconds: float) -> None:
        super().__init__(f"{address} did not answer {what} within {seconds:.3g} s")
        self.address = address


class InvalidAnswer(ClientError):
    """A malformed response: the peer is a faulty broker, or not a Kafka broker."""


def only(elements: Sequence[T], name: str) -> T:
    """Return the one result in the response to a request about one thing. Raise InvalidAnswer if there is not one."""
    if len(elements) != 1:
        raise InvalidAnswer(f"the broker responded with {len(elements)} results to a request about {name}")
    return elements[0]


class UnsupportedByBroker(ClientError):
    """The broker is too old or too new for the request."""


class UnknownTopic(ClientError):
    """The topic does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic!r}")
        self.topic = topic


class UnknownPartition(ClientError):
    """The topic has fewer partitions."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(f"topic {topic} has no partition {partition}; it has 0 to {count - 1}")
        self.topic = topic
        self.partition = partition


class UnknownBroker(ClientError):
    """The cluster has no active broker with this id."""

    def __init__(self, node_id: int, known: Iterable[int]) -> None:
        super().__init__(
            f"there is no active broker {node_id}; active brokers: {', '.join(map(str, sorted(known))) or 'none'}"
        )
        self.node_id = node_id


class Refused(ClientError):
    """The broker responded with an error code."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        super().__init__(f"{subject}: {code_text(code, message)}")
        self.subject = subject
        self.code = code
        self.message = message
        self.is_retriable = code in _RETRIABLE
        self.is_ambiguous = code in _AMBIGUOUS


class OffsetOutOfRange(Refused):
    """The requested offset is not, or no longer, in the log."""

    def __init__(self, subject: str, offset: int, log_start_offset: int) -> None:
        start = f"; the log starts at {log_start_offset}" if log_start_offset >= 0 else ""
        super().__init__(subject, ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is out of range{start}")
        self.offset = offset
        self.log_start_offset = log_start_offset


class EndNotReached(ClientError):
    """The log did not reach the end of the requested range in time."""


def _restored(kind: type[ClientError], arguments: tuple[Any, ...], state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def code_name(code: int) -> str:
    """Return the name of an error code, or its number if it is unknown."""
    known = ErrorCode(code)
    return known.name if known == code else f"error {code}"


def code_text(code: int, message: str | None = None) -> str:
    """Return the broker's message for an error, or a default message, with the name of the error code.

    A message that only repeats the name is none.
    """
    name = code_name(code)
    text = " ".join((message or "").split()).rstrip(".")
    if text in ("", name):
        text = _MESSAGES.get(code, "")
    return f"{text} ({name})" if text else name
