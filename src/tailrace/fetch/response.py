"""FetchResponse: answers put together as the request's version has them.

    0–1    records as messages of format 0                  7    sessions: a top-level error and the session's id
    2–3    records as messages of format 1                  11   preferred read replica
    4      last stable offset, aborted transactions         12   diverging epochs
    5      log start offset                                 13   topics by id instead of name
    6      KAFKA_STORAGE_ERROR; before, it was              16   with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH,
           NOT_LEADER_OR_FOLLOWER, which clients know            who leads now and where that broker is

Partitions of a topic stand together where they follow each other, in the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.fetch.context import Answer, Told
from tailrace.fetch.down_conversion import FIRST_UNCONVERTED_VERSION, converted
from tailrace.fetch.session import PARTITIONS_A_STEP, PartitionFetch
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.field_versions import first_version_with
from tailrace.protocol.messages import FetchResponse
from tailrace.replication.current_leader import LeaderNode, current_leader
from tailrace.replication.hosted_partitions import HostedPartitions

_CURRENT_LEADERS_FROM = first_version_with("FetchResponse", "node_endpoints")
_STORAGE_ERROR_FROM = 6

_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def refusal(fetch: PartitionFetch, code: ErrorCode) -> FetchResponse.PartitionData:
    """The answer of a partition that is not read at all."""
    return FetchResponse.PartitionData(partition_index=fetch.index, error_code=code, high_watermark=-1, records=b"")


def adapt_errors(
    answers: Sequence[Answer], version: int, partitions: HostedPartitions, image: MetadataImage, listener: str
) -> Steps[dict[int, LeaderNode]]:
    """Put errors as the version knows them; the nodes to which they send the client, by id."""
    nodes: dict[int, LeaderNode] = {}
    for number, (fetch, answer) in enumerate(answers, 1):
        if not number % PARTITIONS_A_STEP:
            yield
        code = answer.error_code
        if code == ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_FROM:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif code in _LED_ELSEWHERE and version >= _CURRENT_LEADERS_FROM:
            leader = current_leader(fetch.key, partitions, image, listener)
            answer.current_leader = FetchResponse.LeaderIdAndEpoch(
                leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
            )
            if leader.node is not None:
                nodes[leader.leader_id] = leader.node
    return nodes


def build_response(
    told: Told, version: int, *, throttle_ms: int = 0, nodes: Iterable[LeaderNode] = (), converts: bool = True
) -> Steps[FetchResponse]:
    """`converts`: versions that cannot read stored batches get messages of an old format in their place."""
    topics: list[FetchResponse.FetchableTopicResponse] = []
    topic, identity = None, None
    for number, (fetch, answer) in enumerate(told.answers, 1):
        if not number % PARTITIONS_A_STEP:
            yield
        if converts and version < FIRST_UNCONVERTED_VERSION:
            answer = converted(fetch, answer, version)
        if topic is None or identity != fetch.identity[0]:
            identity = fetch.identity[0]
            topic = FetchResponse.FetchableTopicResponse(
                topic=fetch.topic or "", topic_id=fetch.topic_id, partitions=[answer]
            )
            topics.append(topic)
        else:
            topic.partitions.append(answer)
    return FetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=told.error,
        session_id=told.session_id,
        responses=topics,
        node_endpoints=[
            FetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes
        ],
    )
