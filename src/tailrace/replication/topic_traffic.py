"""TopicTraffic: what has gone in and out of a topic's partitions here, counted as Kafka's BrokerTopicMetrics count.

One per hosted topic; its partitions share it, so that counting is an addition and no lookup. When the last of them
goes, what it counted stays in the sum over all topics.
"""

from __future__ import annotations

from typing import Final


class TopicTraffic:
    COUNTERS: Final = (
        "bytes_in",  # of records that were appended, as the client sent them
        "bytes_out",  # of records in answers to consumers
        "bytes_rejected",  # of records larger than max.message.bytes
        "failed_fetch_requests",  # reads of a partition that failed for a reason that no client can cause
        "failed_produce_requests",  # likewise appends, and those whose records were refused one by one
        "fetch_requests",  # reads of a partition
        "messages_in",
        "produce_requests",  # appends to a partition
        "replication_bytes_in",  # of records fetched from leaders
        "replication_bytes_out",  # of records in answers to followers
    )
    __slots__ = (*COUNTERS, "partitions")

    def __init__(self) -> None:
        self.partitions = 0  # how many of the topic are hosted here, online or not
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.failed_fetch_requests = 0
        self.failed_produce_requests = 0
        self.fetch_requests = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: TopicTraffic) -> None:
        for name in self.COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
