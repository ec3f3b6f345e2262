"""ListOffsets (key 2), versions 0–11.

Behaviour
    Returns the offset of the first record at or after a timestamp, or one of the log's bounds. "Latest" is the high
    watermark for read_uncommitted, the last stable offset for read_committed, and the log end for a replica. A search
    by timestamp returns no offset at or above it. A chore searches large or compressed batches (`request_work.py`).
Version notes
    0   a list of offsets, found by the modification times of segment files
    1   one offset with its timestamp
    2   isolation level
    4   leader epochs, in the request and the response
    7   -3, the record with the largest timestamp
    8   -4, the first local offset
    9   -5, the last offset in tiered storage
    11  -6, the first offset that is not yet in tiered storage
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.replies import Replies
from tailrace.broker.requests.data.remote_list_offsets import DelayedRemoteListOffsets, RemoteLookup
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.storage.remote.remote_reads import RemoteReads, TimeAnswer
from tailrace.log.reading.timestamp_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    BatchSearch,
    FoundOffset,
    begin_search,
)
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_TIMESTAMP, Offset, TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from tailrace.records.batch import CorruptBatch
from tailrace.records.checks.checked_records import LOOP_COST_MAX, walk_cost
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.waiting.purgatory import Purgatory

Answer = ListOffsetsResponse.ListOffsetsPartitionResponse

_CONSUMER, _DEBUGGER = -1, -2
_ISOLATION_LEVELS = (0, 1)
_EPOCHS_FROM = first_version_with("ListOffsetsResponse", "topics.partitions.leader_epoch")
_NO_EPOCH = -1
_COST_AT_ONCE = LOOP_COST_MAX // 64  # a piece of a request has up to 64 partitions
_FIRST_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


class _Pending(NamedTuple):
    """A lookup that must search a batch."""

    partition: Partition
    answer: Answer
    search: BatchSearch


def handle(
    request: Request,
    now_ms: int,
    *,
    partitions: HostedPartitions,
    permissions: Permissions,
    replies: Replies,
    request_work: RequestWork,
    remote_reads: RemoteReads | None,
    purgatory: Purgatory,
) -> ListOffsetsResponse | None:
    body: ListOffsetsRequest = request.body
    if body.isolation_level not in _ISOLATION_LEVELS:
        return _refused(body, ErrorCode.UNKNOWN_SERVER_ERROR)
    counts: dict[TopicPartition, int] = {}
    for topic in body.topics:
        for asked in topic.partitions:
            key = TopicPartition(topic.name, asked.partition_index)
            counts[key] = counts.get(key, 0) + 1
    repeated = {key for key, count in counts.items() if count > 1}
    pending: list[_Pending] = []
    remote: list[RemoteLookup] | None = None if remote_reads is None else []
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=_answer_topic(
                    request, topic, repeated, pending, remote, now_ms, partitions=partitions, permissions=permissions
                ),
            )
            for topic in _distinct(body.topics)
        ]
    )
    search = partial(_search_by_chore, partitions=partitions, replies=replies, request_work=request_work)
    if remote and remote_reads is not None:
        timeout_ms = body.timeout_ms if body.timeout_ms > 0 else remote_reads.list_timeout_ms
        operation = DelayedRemoteListOffsets(
            remote,
            remote_reads.begin_time,
            remote_reads.note_expired_lookups,
            timeout_ms,
            partial(_remote_searched, request, response, pending, search, partitions, replies),
            now_ms,
        )
        if not purgatory.try_complete_or_watch(operation, operation.keys(), now_ms):
            replies.parked(request.context, operation, request.client_id)
        return None
    if not pending:
        return response
    search(request, response, pending)
    return None


def _remote_searched(
    request: Request,
    response: ListOffsetsResponse,
    pending: list[_Pending],
    search: Callable[[Request, ListOffsetsResponse, Sequence[_Pending]], None],
    partitions: HostedPartitions,
    replies: Replies,
    ended: Sequence[tuple[RemoteLookup, TimeAnswer]],
    now_ms: int,
) -> None:
    """Take the results from the remote store, and search the local log where it had none."""
    for (partition, answer, target), (error, found) in ended:
        with _errors_in(answer, partition, partitions=partitions):
            if error:
                raise KafkaError(error)
            if partitions.get(partition.key) is not partition:
                raise KafkaError(partitions.error_of(partition.key))
            partition.fence(-1, leader_only=request.body.replica_id != _DEBUGGER)
            if found is not None:
                _set_found(partition, found, request, answer)
            else:
                local = begin_search(partition.log, target, partition.log.local_start_offset)
                _continue_search(partition, local, request, answer, pending)
    if pending:
        search(request, response, pending)
    else:
        replies.answer(request, response, now_ms)


def _refused(body: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    """Refuse every partition of a request."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    Answer(partition_index=asked.partition_index, error_code=code) for asked in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _search_by_chore(
    request: Request,
    response: ListOffsetsResponse,
    pending: Sequence[_Pending],
    *,
    partitions: HostedPartitions,
    replies: Replies,
    request_work: RequestWork,
) -> None:
    """Have chores search batches, and respond when no lookup is pending."""

    def resume(results: list[FoundOffset | CorruptBatch | None], now_ms: int) -> None:
        left: list[_Pending] = []
        for (partition, answer, search), found in zip(pending, results, strict=True):
            with _errors_in(answer, partition, partitions=partitions):
                if partitions.get(partition.key) is not partition:
                    raise KafkaError(partitions.error_of(partition.key))
                partition.fence(-1, leader_only=request.body.replica_id != _DEBUGGER)
                if isinstance(found, CorruptBatch):
                    raise found
                if found is None and not search.is_last:
                    _continue_search(
                        partition, begin_search(partition.log, search.target, search.next_start), request, answer, left
                    )
                else:
                    _set_found(partition, found, request, answer)
        if left:
            _search_by_chore(request, response, left, partitions=partitions, replies=replies, request_work=request_work)
        else:
            replies.answer(request, response, now_ms)

    request_work.start(request, [partial(_found_in, one.search) for one in pending], resume)


def _found_in(search: BatchSearch) -> FoundOffset | CorruptBatch | None:
    """Search a batch, on any thread."""
    try:
        return search.find()
    except CorruptBatch as error:
        return error


@contextmanager
def _errors_in(answer: Answer, partition: Partition | None, *, partitions: HostedPartitions) -> Iterator[None]:
    """Put the error of a partition into its answer."""
    try:
        yield
    except KafkaError as error:
        answer.error_code = error.code
    except CorruptBatch:
        answer.error_code = ErrorCode.CORRUPT_MESSAGE
    except OSError as error:
        assert partition is not None
        partitions.failed(partition, error)
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR


def _distinct(topics: list[ListOffsetsRequest.ListOffsetsTopic]) -> list[ListOffsetsRequest.ListOffsetsTopic]:
    """Return the topics with each partition once, so that a repeated partition is refused once."""
    for topic in topics:
        topic.partitions = list({one.partition_index: one for one in topic.partitions}.values())
    return topics


def _answer_topic(
    request: Request,
    topic: ListOffsetsRequest.ListOffsetsTopic,
    repeated: set[TopicPartition],
    pending: list[_Pending],
    remote: list[RemoteLookup] | None,
    now_ms: int,
    *,
    partitions: HostedPartitions,
    permissions: Permissions,
) -> list[Answer]:
    """Return the answers for the partitions of a topic. `pending` gets the lookups that must search a batch, and
    `remote` those that begin in the remote store."""
    allowed = permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic.name)
    answers = []
    for asked in topic.partitions:
        key = TopicPartition(topic.name, asked.partition_index)
        answer = Answer(partition_index=asked.partition_index)
        partition = partitions.get(key)
        with _errors_in(answer, partition, partitions=partitions):
            if not allowed:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if key in repeated and request.version > 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"the request lists {key} twice")
            if request.version > 0:
                _check_timestamp(asked.timestamp, request.version)
            partition = partitions.find(key)
            if request.version == 0:
                partition.fence(-1, leader_only=request.body.replica_id != _DEBUGGER)
                answer.old_style_offsets = _offsets_before(partition, asked, request.body.replica_id, now_ms)
            else:
                _look_up(partition, asked, request, answer, pending, remote)
        answers.append(answer)
    return answers


def _check_timestamp(target: int, version: int) -> None:
    """Raise KafkaError for a negative timestamp that the version does not define."""
    if target < 0 and version < _FIRST_VERSION.get(target, 2**15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"version {version} does not define the timestamp {target}")


def _end_for(partition: Partition, request: ListOffsetsRequest) -> Offset:
    """Return the end of the log for this client."""
    if request.replica_id != _CONSUMER:
        return partition.log.log_end_offset
    isolation = Isolation.READ_COMMITTED if request.isolation_level == 1 else Isolation.READ_UNCOMMITTED
    return partition.log.marks.bound(isolation).offset


def _look_up(
    partition: Partition,
    asked: ListOffsetsRequest.ListOffsetsPartition,
    request: Request,
    answer: Answer,
    pending: list[_Pending],
    remote: list[RemoteLookup] | None,
) -> None:
    target = asked.timestamp
    if asked.current_leader_epoch < _NO_EPOCH:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    partition.fence(asked.current_leader_epoch, leader_only=request.body.replica_id != _DEBUGGER)
    if target == LATEST:
        _check_caught_up(partition, request)
        answer.offset = _end_for(partition, request.body)
        _set_epoch(answer, partition.leader_epoch, request.version)
        return
    log = partition.log
    if target >= 0 and remote is not None and log.is_tiered and log.log_start_offset < log.log_end_offset:
        remote.append(RemoteLookup(partition, answer, target))
        return
    _continue_search(partition, begin_search(log, target), request, answer, pending)


def _continue_search(
    partition: Partition,
    search: FoundOffset | BatchSearch | None,
    request: Request,
    answer: Answer,
    pending: list[_Pending],
) -> None:
    """Search small batches at once. Add a lookup that may take longer to `pending`."""
    while isinstance(search, BatchSearch):
        if walk_cost(search.data) > _COST_AT_ONCE:
            pending.append(_Pending(partition, answer, search))
            return
        found = search.find()
        if found is not None or search.is_last:
            _set_found(partition, found, request, answer)
            return
        search = begin_search(partition.log, search.target, search.next_start)
    if search is not None and search.timestamp == NO_TIMESTAMP:  # one of the log's bounds
        _set_offset(answer, search, request.version)
    else:
        _set_found(partition, search, request, answer)


def _set_found(partition: Partition, found: FoundOffset | None, request: Request, answer: Answer) -> None:
    """Set the offset that was found, unless the client may not read it yet."""
    if found is None:
        return
    if found.offset >= _end_for(partition, request.body):
        _check_caught_up(partition, request)
        return
    _set_offset(answer, found, request.version)


def _set_offset(answer: Answer, found: FoundOffset, version: int) -> None:
    answer.offset = found.offset
    answer.timestamp = found.timestamp
    _set_epoch(answer, found.leader_epoch, version)


def _set_epoch(answer: Answer, epoch: int | None, version: int) -> None:
    if version >= _EPOCHS_FROM and epoch is not None:
        answer.leader_epoch = epoch


def _check_caught_up(partition: Partition, request: Request) -> None:
    """Raise KafkaError if the high watermark of a new leader has not reached the start of its epoch yet.

    The end of the log for consumers would move back otherwise. The last stable offset is not checked, because a
    transaction that was open before the epoch may hold it back for long.
    """
    leader = partition.leader
    high_watermark = partition.log.high_watermark
    if leader is not None and request.body.replica_id == _CONSUMER and leader.epoch_start_offset > high_watermark:
        code = ErrorCode.OFFSET_NOT_AVAILABLE if request.version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
        raise KafkaError(code, f"{partition.key}: the high watermark has not reached this leader epoch yet")


def _offsets_before(
    partition: Partition, asked: ListOffsetsRequest.ListOffsetsPartition, replica_id: int, now_ms: int
) -> list[Offset]:
    """Return base offsets of segments last written at or before a time, latest first, for version 0."""
    log = partition.log
    end = log.log_end_offset if replica_id != _CONSUMER else log.high_watermark
    marks = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms()) for segment in log.segments]
    if log.segments.active.size:
        marks.append((log.log_end_offset, now_ms))
    if asked.timestamp == EARLIEST:
        marks = marks[:1]
    elif asked.timestamp != LATEST:
        while marks and marks[-1][1] > asked.timestamp:
            marks.pop()
    offsets = sorted({min(offset, end) for offset, _ in marks[-max(asked.max_num_offsets, 0) :]}, reverse=True)
    return offsets if asked.max_num_offsets > 0 else []
