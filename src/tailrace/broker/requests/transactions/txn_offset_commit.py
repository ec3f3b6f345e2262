"""TxnOffsetCommit (key 28), versions 0–5.

Behaviour
    Commits a group's offsets as part of a producer's transaction. They become visible when the transaction commits, and
    are dropped if it aborts.
Version notes
    2   leader epochs; before, the error is COORDINATOR_NOT_AVAILABLE while a coordinator loads
    3   the member and generation of the consumer group
    4   TRANSACTION_ABORTABLE
    5   the broker adds the group's partition to the transaction; AddOffsetsToTxn is not needed
"""

from __future__ import annotations

from functools import partial

from tailrace.broker.coordination.coordinator_topics import CONSUMER_OFFSETS
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.offsets.commit_plan import CommitPlan, refused
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group import Committer, TopicCommit
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.coordinator.offsets.committed_offsets import Verdict
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.shard_writer import coordinator_error
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_SEQUENCE, TopicPartition
from tailrace.protocol.flat.offset_commit import AskedTopic, CommitTopic
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
    topics = _asked_topics(body)
    if not permissions.allows(request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id):
        return _response(refused(topics, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return _response(refused(topics, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    plan = CommitPlan(request, has_ids=False, controller=controller, permissions=permissions)
    for topic in topics:
        plan.add(topic)
    if not plan.commits:
        return _response(plan.results())
    answer = PendingAnswer(replies, request)
    version, group_id = request.version, body.group_id
    producer = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    committer = Committer(body.member_id, body.group_instance_id, body.generation_id, version, is_transactional=True)

    def refuse(error: KafkaError, now_ms: int) -> None:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOADING_FROM:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        plan.refuse(code)
        answer(_response(plan.results()), now_ms)

    def finish(verdicts: list[Verdict], now_ms: int) -> None:
        plan.finish(verdicts)
        answer(_response(plan.results()), now_ms)

    if not group_id:
        refuse(KafkaError(ErrorCode.INVALID_GROUP_ID), now_ms)
        return None
    offsets = TopicPartition(CONSUMER_OFFSETS, groups.partition_of(group_id))

    def known(errors: dict[TopicPartition, ErrorCode], now_ms: int) -> None:
        if offsets in errors:
            refuse(KafkaError(coordinator_error(errors[offsets])), now_ms)
            return
        operation = partial(_commit, group_id, committer, plan.commits, producer, now_ms)
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
    commits: list[TopicCommit],
    producer: ProducerIdAndEpoch,
    now_ms: int,
    shard: GroupCoordinator,
) -> StateChange[list[Verdict]]:
    return shard.commits.commit(
        group_id,
        committer,
        commits,
        now_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )


def _asked_topics(body: TxnOffsetCommitRequest) -> list[AskedTopic]:
    """Return the topics of a request in the form of OffsetCommit's."""
    return [
        (
            topic.name,
            [
                (
                    one.partition_index,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    (one.committed_metadata or "").encode(),
                    -1,
                )
                for one in topic.partitions
            ],
        )
        for topic in body.topics
    ]


def _response(topics: list[CommitTopic]) -> TxnOffsetCommitResponse:
    response = TxnOffsetCommitResponse()
    for name, partitions, errors in topics:
        assert isinstance(name, str)
        codes = errors if isinstance(errors, list) else [errors] * len(partitions)
        response.topics.append(
            _Topic(
                name=name,
                partitions=[
                    _Partition(partition_index=one[0], error_code=code)
                    for one, code in zip(partitions, codes, strict=True)
                ],
            )
        )
    return response
