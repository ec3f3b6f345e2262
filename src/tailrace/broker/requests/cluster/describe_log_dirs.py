"""DescribeLogDirs (key 35), versions 0–5.

Behaviour
    The log directories of this broker, and the partitions asked for (null: all) with their size and how far they lag
    behind their high watermark. A partition on its way to another directory is told there too, as a future replica
    that lags behind the log. Partitions that are not here are not told. A directory whose disk has failed is told with
    KAFKA_STORAGE_ERROR.
Version notes
    3   an error for the whole request
    4   the size of the file system and what is left of it
    5   whether a directory takes no new partitions
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

    def tell(key: TopicPartition, size: int, lag: int, *, is_future: bool = False) -> None:
        told = DescribeLogDirsResponse.DescribeLogDirsPartition(
            partition_index=key.partition, partition_size=size, offset_lag=lag, is_future_key=is_future
        )
        topics.setdefault(key.topic, Topic(name=key.topic)).partitions.append(told)

    for key, log in directory.logs.items():
        if wanted is None or key in wanted:
            tell(key, log.size, max(log.high_watermark - log.log_end_offset, 0))
    for key in directory.futures:
        partition = partitions.get(key)
        if wanted is not None and key not in wanted:
            continue
        if partition is None or partition.move is None:
            tell(key, directory.futures[key].size, _UNKNOWN_LAG, is_future=True)
        else:
            tell(key, partition.move.size, partition.move.lag, is_future=True)
    return list(topics.values())
