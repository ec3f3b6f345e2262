"""AddOffsetsToTxn (key 25), versions 0–4.

Behaviour
    Adds the group's partition of `__consumer_offsets` to a producer's transaction, so that TxnOffsetCommit can commit
    offsets with the transaction.
Version notes
    2   a fenced producer gets PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
"""

from __future__ import annotations

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinator_topics import CONSUMER_OFFSETS
from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.key_partition import partition_of
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED_FROM = 2


def handle(
    request: Request,
    now_ms: int,
    *,
    config: BrokerConfig,
    controller: Controller,
    permissions: Permissions,
    replies: Replies,
    transactions: Transactions,
) -> AddOffsetsToTxnResponse | None:
    body: AddOffsetsToTxnRequest = request.body
    if not permissions.allows(request, Operation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    waiting = request.without_body()

    def answer(error: ErrorCode, now_ms: int) -> None:
        if error is ErrorCode.PRODUCER_FENCED and waiting.version < _FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        replies.answer(waiting, AddOffsetsToTxnResponse(error_code=error), now_ms)

    producer = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    partition = offsets_partition(body.group_id, config=config, controller=controller)
    transactions.coordinator.add_partitions(body.transactional_id, producer, [partition], 0, answer, now_ms)
    return None


def offsets_partition(group_id: str, *, config: BrokerConfig, controller: Controller) -> TopicPartition:
    """Return the partition of a group's offsets, even if the topic does not exist yet."""
    known = controller.image.topics.get(CONSUMER_OFFSETS)
    count = config.integer("offsets.topic.num.partitions") if known is None else len(known.partitions)
    return TopicPartition(CONSUMER_OFFSETS, partition_of(group_id, count))
