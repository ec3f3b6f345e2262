"""WriteTxnMarkers (key 27), versions 0–2.

Behaviour
    Writes the markers that commit or abort a producer's transaction in partitions led here. Sent by a transaction
    coordinator, or by an administrator who aborts a hanging transaction.
Version notes
    2   transaction.version; from its level 2 on, the epoch of the marker is higher than the epoch of the records
"""

from __future__ import annotations

from functools import partial

from tailrace.broker.coordination.marker_writer import Marker
from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import ProducerId, TopicPartition
from tailrace.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tailrace.replication.hosted_partitions import HostedPartitions

Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class _Results:
    """The results of the markers. The response is sent when all are known."""

    def __init__(self, replies: Replies, request: Request, count: int) -> None:
        self._replies = replies
        self._request = request
        self._left = count
        self._errors: dict[ProducerId, dict[TopicPartition, ErrorCode]] = {}

    def add(self, producer_id: ProducerId, key: TopicPartition, error: ErrorCode, now_ms: int) -> None:
        self._errors.setdefault(producer_id, {})[key] = error
        self._left -= 1
        if not self._left:
            self._replies.answer(self._request, self.response(), now_ms)

    def response(self) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                Result(producer_id=producer_id, topics=_by_topic(errors))
                for producer_id, errors in self._errors.items()
            ]
        )


def handle(
    request: Request,
    now_ms: int,
    *,
    partitions: HostedPartitions,
    permissions: Permissions,
    replies: Replies,
    transactions: Transactions,
) -> WriteTxnMarkersResponse | None:
    body: WriteTxnMarkersRequest = request.body
    markers = [
        (
            key,
            Marker(
                one.producer_id,
                one.producer_epoch,
                one.coordinator_epoch,
                one.transaction_result,
                one.transaction_version if request.version >= 2 else 0,
            ),
        )
        for one in body.markers
        for topic in one.topics
        for key in [TopicPartition(topic.name, index) for index in topic.partition_indexes]
    ]
    results = _Results(replies, request.without_body(), len(markers))
    if not markers:
        return results.response()
    may_write = permissions.allows(request, Operation.ALTER, AclResource.CLUSTER, CLUSTER_NAME) or permissions.allows(
        request, Operation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME
    )
    for key, marker in markers:
        answer = partial(results.add, marker.producer_id, key)
        if not may_write:
            answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, now_ms)
        elif partitions.get(key) is None:
            answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, now_ms)
        else:
            transactions.marker_writer.write(key, marker, answer, now_ms)
    return None


def _by_topic(errors: dict[TopicPartition, ErrorCode]) -> list[TopicResult]:
    topics: dict[str, list[PartitionResult]] = {}
    for key, error in errors.items():
        topics.setdefault(key.topic, []).append(PartitionResult(partition_index=key.partition, error_code=error))
    return [TopicResult(name=name, partitions=found) for name, found in topics.items()]
