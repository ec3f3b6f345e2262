"""TopicConfig: typed view of Kafka's topic keys and their defaults. `TopicConfig()` has the defaults of Kafka 4.3.

`model/configs/topic_settings.py` makes one from the strings that a user wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class InvalidConfig(ValueError):
    """A configuration value that Kafka would refuse."""


TimestampType = Literal["CreateTime", "LogAppendTime"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The topic configs. Each field has the name of its topic key, with underscores, and the key's default."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    # Like Kafka's internal.segment.bytes: tests use segments smaller than the limit for users.
    internal_segment_bytes: int | None = None

    # Derived once, because every append reads them.
    roll_bytes: int = field(init=False, repr=False, compare=False)
    roll_ms: int = field(init=False, repr=False, compare=False)
    is_compacted: bool = field(init=False, repr=False, compare=False)
    # uncompressed batches are stored as the producer sent them
    keeps_plain_batches: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compacted = "compact" in self.cleanup_policy
        small = self.internal_segment_bytes
        derived = {
            # The size and the age at which a segment is sealed. A compacted log also rolls by age, so that records are
            # cleaned in time.
            "roll_bytes": self.segment_bytes if small is None else max(0, small),
            "roll_ms": min(self.segment_ms, self.max_compaction_lag_ms) if compacted else self.segment_ms,
            "is_compacted": compacted,
            "keeps_plain_batches": self.compression_type in ("producer", "uncompressed")
            and self.message_timestamp_type == "CreateTime",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def is_deleted_by_retention(self) -> bool:
        return "delete" in self.cleanup_policy

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TopicConfig:
        """Return the config with these values, by topic key. Keys that are not given have Kafka's default."""
        return cls(**{name.replace(".", "_"): value for name, value in values.items()})
