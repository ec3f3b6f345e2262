"""DescribeQuorum of a quorum of one: its only voter is the leader and is always caught up. Observers follow it."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.metadata.decisions.topic_names import CLUSTER_METADATA
from tailrace.metadata.quorum.served_log import Observer
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicId
from tailrace.protocol import messages


def describe_quorum(
    log: MetadataLog,
    observers: Mapping[tuple[int, bytes], Observer],
    request: messages.DescribeQuorumRequest,
    version: int,
    now_ms: int,
) -> messages.DescribeQuorumResponse:
    """Describe partition 0 of the metadata topic. A request for anything else gets UNKNOWN_TOPIC_OR_PARTITION."""
    response = messages.DescribeQuorumResponse()
    asked = [(topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    if asked != [(CLUSTER_METADATA, [0])]:
        response.topics = [
            messages.DescribeQuorumResponse.TopicData(
                topic_name=name,
                partitions=[
                    messages.DescribeQuorumResponse.PartitionData(
                        partition_index=number,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message="only partition 0 of __cluster_metadata has a quorum" if version >= 2 else None,
                    )
                    for number in numbers
                ],
            )
            for name, numbers in asked
        ]
        return response
    node_id = log.identity.node_id
    voter = messages.DescribeQuorumResponse.ReplicaState(
        replica_id=node_id,
        log_end_offset=log.next_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    if version >= 2:
        if log.quorum.kraft_version >= 1:
            voter.replica_directory_id = TopicId.parse(log.identity.directory_id).value.bytes
        response.nodes = [
            messages.DescribeQuorumResponse.Node(
                node_id=node_id,
                listeners=[
                    messages.DescribeQuorumResponse.Listener(name=one.listener, host=one.host, port=one.port)
                    for one in log.controller_endpoints
                ],
            )
        ]
    partition = messages.DescribeQuorumResponse.PartitionData(
        partition_index=0,
        leader_id=node_id,
        leader_epoch=log.epoch,
        high_watermark=log.log.high_watermark,
        current_voters=[voter],
        observers=[_observer(*key, one, version) for key, one in sorted(observers.items())],
    )
    response.topics = [messages.DescribeQuorumResponse.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    return response


def _observer(
    node_id: int, directory_id: bytes, one: Observer, version: int
) -> messages.DescribeQuorumResponse.ReplicaState:
    described = messages.DescribeQuorumResponse.ReplicaState(
        replica_id=node_id,
        log_end_offset=one.end_offset,
        last_fetch_timestamp=one.fetched_ms,
        last_caught_up_timestamp=one.caught_up_ms,
    )
    if version >= 2:
        described.replica_directory_id = directory_id
    return described
