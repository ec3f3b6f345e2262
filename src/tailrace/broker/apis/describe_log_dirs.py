"""DescribeLogDirs (key 35), versions 0–5.

Behaviour
    The log directories of this broker, and the partitions asked for (null: all) with their size and how far they lag
    behind their high watermark. Partitions that are not here are not told.
Version notes
    3   an error for the whole request
    4   the size of the file system and what is left of it
    5   whether a directory takes no new partitions
Not implemented
    file system sizes: told as -1, not known
    directories that take no new partitions: there are none (cordoned.log.dirs is refused)
"""

from __future__ import annotations

from tailrace.broker.authorizer import Operation
from tailrace.broker.broker import Broker
from tailrace.broker.cluster_authorization import check_cluster
from tailrace.broker.request_context import Request
from tailrace.log.log_directory import LogDirectory
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

Topic = DescribeLogDirsResponse.DescribeLogDirsTopic


def handle(broker: Broker, request: Request, now_ms: int) -> DescribeLogDirsResponse:
    check_cluster(broker, request, Operation.DESCRIBE)
    body: DescribeLogDirsRequest = request.body
    wanted = None
    if body.topics is not None:
        wanted = {TopicPartition(one.topic, number) for one in body.topics for number in one.partitions}
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=one.path, topics=_topics(one, wanted))
            for one in broker.logs.directories
        ]
    )


def _topics(directory: LogDirectory, wanted: set[TopicPartition] | None) -> list[Topic]:
    topics: dict[str, Topic] = {}
    for key, log in directory.logs.items():
        if wanted is not None and key not in wanted:
            continue
        topics.setdefault(key.topic, Topic(name=key.topic)).partitions.append(
            DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=key.partition,
                partition_size=log.size,
                offset_lag=max(log.high_watermark - log.log_end_offset, 0),
            )
        )
    return list(topics.values())
