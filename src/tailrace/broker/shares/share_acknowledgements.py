"""The acknowledgements of a ShareFetch or ShareAcknowledge request: validated, applied and answered together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.shares import Shares
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.shares.acknowledging import Acknowledgement, AcknowledgeType
from tailrace.shares.share_partitions import Done
from tailrace.shares.share_sessions import SessionKey, SharedPartition
from tailrace.shares.state.persisted_state import SharePartitionKey

_RENEW_FROM = first_version_with("ShareAcknowledgeRequest", "is_renew_ack")
_MEMBER_ID_SIZE_MAX = 36
RECORDS_AT_ONCE: Final = (
    1_000  # single acknowledgements that are applied without a pause, unless one partition has more
)
_NOT_HOSTED = "This server does not host this topic-partition."


class _Batch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...
    @property
    def acknowledgement_batches(self) -> Sequence[_Batch]: ...


class _Topic(Protocol):
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[_Partition]: ...


class Verdict(NamedTuple):
    """The result of a partition's acknowledgements."""

    code: ErrorCode
    message: str | None = None


Verdicts = dict[SharedPartition, Verdict]


def session_key(request: Request, *, permissions: Permissions, shares: Shares) -> SessionKey:
    """Return the session key of a request. Raise KafkaError if the request is invalid or not authorized."""
    body = request.body
    if not shares.is_enabled:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if body.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.member_id or len(body.member_id) > _MEMBER_ID_SIZE_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionKey(body.group_id, body.member_id)


def topic_names(topics: Sequence[_Topic], *, controller: Controller) -> dict[SharedPartition, str | None]:
    """Return the partitions of a request with the names of their topics, or None for unknown topics."""
    by_id = controller.image.topics_by_id
    named: dict[SharedPartition, str | None] = {}
    for topic in topics:
        topic_id = bytes(topic.topic_id)
        known = by_id.get(topic_id)
        for one in topic.partitions:
            named[SharedPartition(topic_id, one.partition_index)] = None if known is None else known.name
    return named


def readable_error(
    request: Request, partition: SharedPartition, topic: str | None, *, controller: Controller, permissions: Permissions
) -> ErrorCode | None:
    """Return the error of a partition that is unknown or that the client may not read, else None."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not permissions.allows(request, Operation.READ, AclResource.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if controller.image.partition(TopicPartition(topic, partition.partition)) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def acknowledge_all(
    request: Request,
    key: SessionKey,
    topics: Sequence[_Topic],
    answer: Callable[[Verdicts, int], None],
    now_ms: int,
    *,
    controller: Controller,
    permissions: Permissions,
    shares: Shares,
) -> Steps[int]:
    """Apply the acknowledgements of a request. `answer` is called when all of them are persisted or refused. Return the
    current time."""
    names = topic_names(topics, controller=controller)
    verdicts: Verdicts = {}
    checked = 0
    acknowledged: dict[SharedPartition, list[Acknowledgement]] = {}
    for topic in topics:
        for one in topic.partitions:
            partition = SharedPartition(bytes(topic.topic_id), one.partition_index)
            batches = one.acknowledgement_batches
            checked += len(batches)
            if checked > RECORDS_AT_ONCE:
                checked = len(batches)
                now_ms = yield
            error: ErrorCode | None = None
            if names[partition] is not None and not _is_valid(batches, request):
                error = ErrorCode.INVALID_REQUEST
            error = error or readable_error(
                request, partition, names[partition], controller=controller, permissions=permissions
            )
            if error is not None:
                verdicts[partition] = Verdict(error)
            else:
                acknowledged[partition] = [
                    Acknowledgement(batch.first_offset, batch.last_offset, tuple(batch.acknowledge_types))
                    for batch in batches
                ]
    if any(acknowledged.values()):
        return (yield from _PendingVerdicts(shares, key, acknowledged, verdicts, answer).start(now_ms))
    answer(verdicts, now_ms)  # as in Kafka: partitions without acknowledgements are only reported together with others
    return now_ms


def _is_valid(batches: Sequence[_Batch], request: Request) -> bool:
    most = AcknowledgeType.RENEW if request.version >= _RENEW_FROM else AcknowledgeType.REJECT
    previous_last = -1
    for batch in batches:
        types = batch.acknowledge_types
        size = batch.last_offset - batch.first_offset + 1
        if size <= 0 or batch.first_offset < previous_last or not types or len(types) not in (1, size):
            return False
        if min(types) < AcknowledgeType.GAP or max(types) > most:
            return False
        if max(types) == AcknowledgeType.RENEW and not request.body.is_renew_ack:
            return False
        previous_last = batch.last_offset
    return True


class _PendingVerdicts:
    """The acknowledgements of one request, and the verdicts that are known so far."""

    def __init__(
        self,
        shares: Shares,
        key: SessionKey,
        acknowledged: Mapping[SharedPartition, list[Acknowledgement]],
        verdicts: Verdicts,
        answer: Callable[[Verdicts, int], None],
    ) -> None:
        self._shares = shares
        self._key = key
        self._acknowledged = acknowledged
        self._verdicts = verdicts
        self._answer = answer
        self._missing = len(acknowledged)

    def start(self, now_ms: int) -> Steps[int]:
        """Apply the acknowledgements, partition by partition. Return the current time."""
        group_id, member_id = self._key
        applied = 0
        for partition, acknowledgements in self._acknowledged.items():
            size = sum(len(one.types) for one in acknowledgements)
            applied += size
            if applied > RECORDS_AT_ONCE and applied > size:
                applied = size
                now_ms = yield
            done = self._completion_of(partition)
            if not acknowledgements:
                done(None, now_ms)
                continue
            self._shares.partitions.acknowledge(
                SharePartitionKey(group_id, *partition), member_id, acknowledgements, done, now_ms
            )
        return now_ms

    def _completion_of(self, partition: SharedPartition) -> Done:
        def done(error: KafkaError | None, now_ms: int) -> None:
            self._verdicts[partition] = Verdict(ErrorCode.NONE) if error is None else _verdict(error)
            self._missing -= 1
            if not self._missing:
                self._answer(self._verdicts, now_ms)

        return done


def _verdict(error: KafkaError) -> Verdict:
    message = str(error)
    if message == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name:
        message = _NOT_HOSTED
    return Verdict(error.code, message)
