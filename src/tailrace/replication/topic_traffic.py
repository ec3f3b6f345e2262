"""TopicTraffic: the traffic of a topic's partitions here, counted like Kafka's BrokerTopicMetrics.

All partitions of a topic share one object, so that counting needs no lookup. When the last partition is removed, the
counts are added to the sum of all former topics.
"""

from __future__ import annotations

from typing import Final


class TopicTraffic:
    COUNTERS: Final = (
        "bytes_in",  # of appended records, as the client sent them
        "bytes_out",  # of records in responses to consumers
        "bytes_rejected",  # of records larger than max.message.bytes
        "failed_fetch_requests",  # reads of a partition that failed for a reason other than the client
        "failed_produce_requests",  # the same for appends, and appends whose records were refused one by one
        "fetch_requests",  # reads of a partition
        "messages_in",
        "produce_requests",  # appends to a partition
        "replication_bytes_in",  # of records fetched from leaders
        "replication_bytes_out",  # of records in responses to followers
    )
    __slots__ = (*COUNTERS, "partitions")

    def __init__(self) -> None:
        self.partitions = 0  # number of the topic's partitions here, online or offline
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

    def add_partition(self) -> None:
        self.partitions += 1

    def remove_partition(self) -> bool:
        """Return True if the topic has no other partition here."""
        self.partitions -= 1
        return not self.partitions

    def add(self, other: TopicTraffic) -> None:
        for name in self.COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
