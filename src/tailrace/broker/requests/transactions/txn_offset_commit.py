"""TxnOffsetCommit (key 28), versions 0–5.

Behaviour
    Commits a group's offsets as part of a producer's transaction: they count when it commits, and never if it aborts.
Version notes
    2   leader epochs; before, COORDINATOR_NOT_AVAILABLE is told while a coordinator loads
    3   the member and generation of the group that has read what these offsets are of
    4   TRANSACTION_ABORTABLE
    5   AddOffsetsToTxn need not come first
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tailrace.broker.coordination.coordinator_topics import CONSUMER_OFFSETS
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import find_topic
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group import Committer, PartitionCommit, TopicCommit
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.shard_writer import coordinator_error
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_SEQUENCE, TopicPartition
from tailrace.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition

_LOADING_FROM = 2
_ABORTABLE_FROM = 4
_ADDS_FROM = 5


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
    transaction_verification: TransactionVerification,
) -> TxnOffsetCommitResponse | None:
    body: TxnOffsetCommitRequest = request.body
    if not permissions.allows(request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id):
        return _all_refused(body, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return _all_refused(body, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    response, commits, places = _plan(request, controller=controller, permissions=permissions)
    if not commits:
        return response
    answer = PendingAnswer(replies, request)
    version, group_id = request.version, body.group_id
    producer = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    committer = Committer(body.member_id, body.group_instance_id, body.generation_id, version, is_transactional=True)

    def refuse(error: KafkaError, now_ms: int) -> None:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOADING_FROM:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        finish([[code] * len(place) for place in places], now_ms)

    def finish(errors: list[list[ErrorCode]], now_ms: int) -> None:
        for place, codes in zip(places, errors, strict=True):
            for part, code in zip(place, codes, strict=True):
                part.error_code = code
        answer(response, now_ms)

    if not group_id:
        refuse(KafkaError(ErrorCode.INVALID_GROUP_ID), now_ms)
        return None
    offsets = TopicPartition(CONSUMER_OFFSETS, groups.partition_of(group_id))

    def known(errors: dict[TopicPartition, ErrorCode], now_ms: int) -> None:
        if offsets in errors:
            refuse(KafkaError(coordinator_error(errors[offsets])), now_ms)
            return
        operation = partial(_commit, group_id, committer, commits, producer, now_ms)
        groups.write(group_id, operation, finish, refuse, now_ms)

    transaction_verification.verify(
        body.transactional_id,
        producer,
        {offsets: NO_SEQUENCE},
        known,
        now_ms,
        is_added=version >= _ADDS_FROM,
        is_abortable=version >= _ABORTABLE_FROM,
    )
    return None


def _commit(
    group_id: str,
    committer: Committer,
    commits: Sequence[TopicCommit],
    producer: ProducerIdAndEpoch,
    now_ms: int,
    shard: GroupCoordinator,
) -> StateChange[list[list[ErrorCode]]]:
    return shard.commits.commit_in_transaction(
        group_id,
        committer,
        commits,
        now_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )


def _plan(
    request: Request, *, controller: Controller, permissions: Permissions
) -> tuple[TxnOffsetCommitResponse, list[TopicCommit], list[list[_Partition]]]:
    """The response, filled in where that can be said now; what is to be committed, and where its errors go."""
    response = TxnOffsetCommitResponse()
    commits: list[TopicCommit] = []
    places: list[list[_Partition]] = []
    for asked in request.body.topics:
        found = find_topic(
            request, asked.name, bytes(16), Operation.READ, controller=controller, permissions=permissions
        )
        told = _Topic(name=asked.name)
        response.topics.append(told)
        wanted, place = [], []
        for one in asked.partitions:
            part = _Partition(partition_index=one.partition_index, error_code=found.error)
            told.partitions.append(part)
            if found.topic is None:
                continue
            if one.partition_index not in found.topic.partitions:
                part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            place.append(part)
            wanted.append(
                PartitionCommit(
                    one.partition_index, one.committed_offset, one.committed_leader_epoch, one.committed_metadata, -1
                )
            )
        if found.topic is not None and wanted:
            commits.append(TopicCommit(found.name, bytes(16), wanted))
            places.append(place)
    return response, commits, places


def _all_refused(body: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _Partition(partition_index=one.partition_index, error_code=code) for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
