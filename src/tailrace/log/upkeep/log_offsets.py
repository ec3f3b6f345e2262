"""LogOffsets: the bounds of a log as properties, and the part of it that is in a remote store.

With tiered storage a log begins in the remote store:

    log start          local start                 highest remote offset           log end
        │   remote store    │    remote store and local disk    │    local disk only    │
"""

from __future__ import annotations

from typing import Final

from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.durability import Durability
from tailrace.log.upkeep.retention import RetentionLimits, limits_of
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig

# Their records are never copied to a remote store, whatever their configs are.
LOCAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata", "__cluster_metadata"}
)
NOTHING_REMOTE: Final = -1


class LogOffsets:
    def __init__(
        self,
        partition: TopicPartition,
        config: TopicConfig,
        segments: SegmentList,
        marks: Watermarks,
        durability: Durability,
    ) -> None:
        self.partition = partition
        self.config = config
        self.segments = segments
        self.marks = marks
        self.durability = durability
        self.highest_remote_offset: Offset = NOTHING_REMOTE  # the last offset that is known to be in the remote store

    @property
    def recovery_point(self) -> Offset:
        return self.durability.recovery_point

    @property
    def log_start_offset(self) -> Offset:
        return self.marks.log_start_offset

    @property
    def local_start_offset(self) -> Offset:
        """The first offset that can be read from the local disk."""
        return max(self.marks.log_start_offset, self.segments.first.base_offset)

    @property
    def log_end_offset(self) -> Offset:
        return self.marks.log_end.offset

    @property
    def high_watermark(self) -> Offset:
        return self.marks.high_watermark.offset

    @property
    def last_stable_offset(self) -> Offset:
        return self.marks.last_stable_offset

    @property
    def size(self) -> int:
        return self.segments.total_size()

    @property
    def is_tiered(self) -> bool:
        """True if the log may begin in a remote store."""
        return is_tiered(self.partition, self.config)

    @property
    def is_copied(self) -> bool:
        """True if sealed segments are copied to a remote store."""
        return self.is_tiered and not self.config.remote_log_copy_disable

    def raise_highest_remote_offset(self, offset: Offset) -> None:
        """Note that everything up to an offset is in the remote store."""
        self.highest_remote_offset = max(self.highest_remote_offset, offset)

    def reset_highest_remote_offset(self) -> None:
        """Note that nothing is in the remote store any more."""
        self.highest_remote_offset = NOTHING_REMOTE

    def retention_limits(self) -> RetentionLimits:
        """Return the limits of the local log."""
        return limits_of(self.config, self.highest_remote_offset if self.is_copied else None)

    def only_local_segments(self) -> list[int]:
        """Return the sizes of the segments that are not in the remote store yet."""
        return [one.size for one in self.segments if one.base_offset >= self.highest_remote_offset]


def is_tiered(partition: TopicPartition, config: TopicConfig) -> bool:
    return config.remote_storage_enable and partition.topic not in LOCAL_TOPICS
