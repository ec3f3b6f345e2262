"""Topics, records and disks of a cluster. Configs are in configs.py, offsets in offsets.py.

Each change is one request for one resource. An error response is raised as `Refused`, with the broker's message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.cluster.metadata import NO_LEADER, Broker, ClusterMetadata
from tailrace.client.errors import OffsetOutOfRange, Refused, UnknownTopic
from tailrace.client.network.address import Address
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, Offset, TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

BROKER_DEFAULT: Final = -1
ALL_RECORDS: Final = -1  # for delete_records: all records up to the high watermark
ANSWER_MARGIN_MS: Final = 1_000  # added to the timeout, so that the broker's own timeout error arrives
FIRST_CREATE_WITH_VALIDATION: Final = first_version_with("CreateTopicsRequest", "validate_only")
FIRST_CREATE_WITH_DEFAULTS: Final = 4
FIRST_DELETE_WITH_IDS: Final = first_version_with("DeleteTopicsRequest", "topics.topic_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create. The broker's default applies to an omitted number (Kafka 2.4 or later)."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignment: Sequence[Sequence[BrokerId]] = ()  # replicas of partition 0, 1, …, instead of the two numbers
    config: Mapping[str, str] = field(default_factory=dict)


class LogDirectory(NamedTuple):
    """A broker's log directory, with the sizes of the replicas in it."""

    broker: BrokerId
    path: str
    error_code: int
    total_bytes: int  # size of the volume; -1 if the broker does not report it
    usable_bytes: int
    replicas: tuple[ReplicaSize, ...]


class ReplicaSize(NamedTuple):
    partition: TopicPartition
    size: int
    offset_lag: int
    is_future: bool


def create_topic(cluster: ClusterClient, topic: NewTopic, *, validate_only: bool = False, wait: bool = True) -> None:
    """Create a topic. With `wait`, return when the queried broker knows the leaders of all partitions."""
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=topic.name,
                num_partitions=BROKER_DEFAULT if topic.assignment else topic.partitions,
                replication_factor=BROKER_DEFAULT if topic.assignment else topic.replication_factor,
                assignments=[
                    CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                    for index, brokers in enumerate(topic.assignment)
                ],
                configs=[
                    CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.config.items()
                ],
            )
        ],
        timeout_ms=cluster.settings.request_timeout_ms,
        validate_only=validate_only,
    )

    def check(answer: CreateTopicsResponse) -> None:
        for one in answer.topics:
            _raise(f"topic {one.name}", one.error_code, one.error_message)

    uses_defaults = BROKER_DEFAULT in (topic.partitions, topic.replication_factor) and not topic.assignment
    version_min = FIRST_CREATE_WITH_DEFAULTS if uses_defaults else FIRST_CREATE_WITH_VALIDATION
    cluster.change(request, check, version_min=version_min)
    if wait and not validate_only:
        _wait_for_leaders(cluster, topic.name, len(topic.assignment) or topic.partitions)


def _wait_for_leaders(cluster: ClusterClient, name: str, partitions: int) -> None:
    budget = cluster.retry_budget()
    while True:
        try:
            found = cluster.topic(name, fresh=True).partitions
            if len(found) >= partitions and all(one.leader != NO_LEADER and not one.error_code for one in found):
                return
        except UnknownTopic:
            if not budget.pause():
                raise
            continue
        if not budget.pause():
            raise Refused(
                f"topic {name}",
                ErrorCode.LEADER_NOT_AVAILABLE,
                "the topic is created, but some leaders are still unknown",
            )


def delete_topic(cluster: ClusterClient, name: str, *, wait: bool = True) -> None:
    """Delete a topic. With `wait`, return when the queried broker no longer knows it."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=cluster.settings.request_timeout_ms
    )

    def check(answer: DeleteTopicsResponse) -> None:
        for one in answer.responses:
            if one.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            _raise(f"topic {name}", one.error_code, one.error_message)

    cluster.change(request, check, version_min=FIRST_DELETE_WITH_IDS)
    budget = cluster.retry_budget()
    while wait and any(not topic.error_code for topic in cluster.refresh([name]).topics):
        if not budget.pause():
            raise Refused(
                f"topic {name}", ErrorCode.REQUEST_TIMED_OUT, "the topic is deleted, but the broker still reports it"
            )


def add_partitions(
    cluster: ClusterClient,
    name: str,
    count: int,
    *,
    assignment: Sequence[Sequence[BrokerId]] | None = None,
    validate_only: bool = False,
    wait: bool = True,
) -> None:
    """Increase the number of partitions of a topic to `count`. `assignment` has the replicas of each new partition."""
    lists = [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignment or ()]
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=lists or None),
        ],
        timeout_ms=cluster.settings.request_timeout_ms,
        validate_only=validate_only,
    )

    def check(answer: CreatePartitionsResponse) -> None:
        for one in answer.results:
            if one.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            _raise(f"topic {name}", one.error_code, one.error_message)

    cluster.change(request, check)
    if wait and not validate_only:
        _wait_for_leaders(cluster, name, count)


def delete_records(cluster: ClusterClient, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
    """Delete the records before an offset, or ALL_RECORDS. Return the new log start offsets."""

    def build(leaders: list[LedPartition]) -> DeleteRecordsRequest:
        topics: dict[str, DeleteRecordsRequest.DeleteRecordsTopic] = {}
        for leader in leaders:
            name, index = leader.partition
            topic = topics.setdefault(name, DeleteRecordsRequest.DeleteRecordsTopic(name=name))
            topic.partitions.append(
                DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=before[leader.partition])
            )
        timeout_ms = cluster.settings.request_timeout_ms
        return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)

    def read(answer: DeleteRecordsResponse, leaders: list[LedPartition]) -> Iterator[PartitionAnswer]:
        for topic in answer.topics:
            for data in topic.partitions:
                partition = TopicPartition(topic.name, data.partition_index)
                error: Refused | None = Refused(str(partition), data.error_code) if data.error_code else None
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    error = OffsetOutOfRange(str(partition), before[partition], data.low_watermark)
                yield PartitionAnswer(partition, data.low_watermark, error)

    return cluster.ask_leaders(before, build, read, wait_ms=ANSWER_MARGIN_MS)


def log_directories(cluster: ClusterClient, topics: Iterable[str] | None = None) -> list[LogDirectory]:
    """Return the log directories of all brokers, with the replicas of these topics (None: of all topics)."""
    wanted = None
    if topics is not None:
        wanted = [
            DescribeLogDirsRequest.DescribableLogDirTopic(
                topic=topic.name, partitions=[partition.partition for partition in topic.topic_partitions]
            )
            for topic in map(cluster.topic, topics)
        ]

    def check(answer: DescribeLogDirsResponse) -> None:
        _raise("log directories", answer.error_code)

    found = []
    for node_id in sorted(cluster.metadata.brokers):
        answer: DescribeLogDirsResponse = cluster.ask_node(
            node_id, DescribeLogDirsRequest(topics=wanted), check=check, version_min=1
        )
        found += [_log_directory(node_id, result) for result in answer.results]
    return found


def _log_directory(node_id: BrokerId, result: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDirectory:
    replicas = [
        ReplicaSize(
            TopicPartition(topic.name, one.partition_index), one.partition_size, one.offset_lag, one.is_future_key
        )
        for topic in result.topics
        for one in topic.partitions
    ]
    replicas.sort()
    return LogDirectory(
        node_id, result.log_dir, result.error_code, result.total_bytes, result.usable_bytes, tuple(replicas)
    )


def describe_cluster(cluster: ClusterClient, *, include_fenced: bool = False) -> ClusterMetadata:
    """Query the cluster's id, controller and brokers."""

    def check(answer: DescribeClusterResponse) -> None:
        _raise("the cluster", answer.error_code, answer.error_message)

    request = DescribeClusterRequest(include_fenced_brokers=include_fenced)
    answer: DescribeClusterResponse = cluster.ask_any(request, check=check)
    brokers = {
        one.broker_id: Broker(one.broker_id, Address(one.host, one.port), one.rack, one.is_fenced)
        for one in answer.brokers
    }
    return ClusterMetadata(answer.cluster_id, answer.controller_id, brokers)


def _raise(subject: str, code: int, message: str | None = None) -> None:
    if code:
        raise Refused(subject, code, message)
