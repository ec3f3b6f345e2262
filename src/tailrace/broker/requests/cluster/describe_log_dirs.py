"""DescribeLogDirs (key 35), versions 0–5.

Behaviour
    Returns the log directories of this broker, and the requested partitions (null: all) with their sizes and their lag
    behind the high watermark. A partition that is being moved is also listed in the target directory, as a future
    replica with its lag behind the log. Partitions without a log here are left out. A directory whose disk has failed
    has KAFKA_STORAGE_ERROR.
Version notes
    3   an error for the whole request
    4   total and usable bytes of the file system
    5   cordoned directories
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from tailrace.replication.hosted_partitions import HostedPartitions

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
_UNKNOWN_LAG = -1


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    logs: LogDirectories,
    partitions: HostedPartitions,
    permissions: Permissions,
) -> DescribeLogDirsResponse:
    check_cluster(request, Operation.DESCRIBE, permissions=permissions)
    body: DescribeLogDirsRequest = request.body
    wanted = None
    if body.topics is not None:
        wanted = {TopicPartition(one.topic, number) for one in body.topics for number in one.partitions}
    return DescribeLogDirsResponse(
        results=[
            *(
                _described(one, wanted, controller=controller, logs=logs, partitions=partitions)
                for one in logs.directories
            ),
            *(_offline(path) for path in logs.unusable),
        ]
    )


def _described(
    directory: LogDirectory,
    wanted: set[TopicPartition] | None,
    *,
    controller: Controller,
    logs: LogDirectories,
    partitions: HostedPartitions,
) -> Result:
    if directory.failure is not None:
        return _offline(directory.path)
    try:
        space = directory.space()
    except OSError as error:
        logs.on_failure(directory, error)
        return _offline(directory.path)
    return Result(
        log_dir=directory.path,
        topics=_topics(directory, wanted, partitions=partitions),
        total_bytes=space.total,
        usable_bytes=space.usable,
        is_cordoned=controller.image.record_versions.has_cordoned_directories and directory.path in logs.cordoned,
    )


def _offline(path: str) -> Result:
    return Result(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)


def _topics(
    directory: LogDirectory, wanted: set[TopicPartition] | None, *, partitions: HostedPartitions
) -> list[Topic]:
    topics: dict[str, Topic] = {}

    def add(key: TopicPartition, size: int, lag: int, *, is_future: bool = False) -> None:
        described = DescribeLogDirsResponse.DescribeLogDirsPartition(
            partition_index=key.partition, partition_size=size, offset_lag=lag, is_future_key=is_future
        )
        topics.setdefault(key.topic, Topic(name=key.topic)).partitions.append(described)

    for key, log in directory.logs.items():
        if wanted is None or key in wanted:
            add(key, log.size, max(log.high_watermark - log.log_end_offset, 0))
    for key in directory.futures:
        partition = partitions.get(key)
        if wanted is not None and key not in wanted:
            continue
        if partition is None or partition.move is None:
            add(key, directory.futures[key].size, _UNKNOWN_LAG, is_future=True)
        else:
            add(key, partition.move.size, partition.move.lag, is_future=True)
    return list(topics.values())
