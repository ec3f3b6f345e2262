"""TopicConfig: typed view of Kafka's topic keys and their defaults.

`TopicConfig.parse` takes the strings a user wrote and says in one sentence what is wrong with them;
`TopicConfig()` is Kafka 4.3's default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

T = TypeVar("T")

_NUMBER = re.compile(r"[+-]?[0-9]+")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")


class InvalidConfig(ValueError):
    """A configuration value that Kafka would refuse."""


def _whole_number(text: str) -> int:
    # Stricter than int(), which also takes digits of other scripts and underscores between them.
    if not _NUMBER.fullmatch(text):
        raise ValueError("must be a whole number")
    return int(text)


def _parse_int(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = _whole_number(text)
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def _parse_float(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("must be a number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low:g} and {high:g}")
        return value

    return parse


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _parse_choice(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


def _parse_gzip_level(text: str) -> int:
    value = _whole_number(text)
    if value != -1 and not 1 <= value <= 9:
        raise ValueError("must be -1 or between 1 and 9")
    return value


def _parse_list(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


def _parse_cleanup_policy(text: str) -> frozenset[str]:
    names = _parse_list(text)
    for name in names:
        if name not in ("compact", "delete"):
            raise ValueError("must be a list of compact and delete")
    return frozenset(names)


def _parse_replicas(text: str) -> tuple[str, ...]:
    names = _parse_list(text)
    if names != ["*"] and not all(_REPLICA.fullmatch(name) for name in names):
        raise ValueError("must be * or a list of partition:broker")
    return tuple(names)


def _key(name: str, parse: Callable[[str], T], default: T) -> T:
    """A field that is read from the topic key `name`."""
    result: T = field(default=default, metadata={"key": name, "parse": parse})
    return result


TimestampType = Literal["CreateTime", "LogAppendTime"]
_LONG = _parse_int(0, LONG_MAX)
_POSITIVE_LONG = _parse_int(1, LONG_MAX)
_INT = _parse_int(0, INT_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    cleanup_policy: frozenset[str] = _key("cleanup.policy", _parse_cleanup_policy, frozenset({"delete"}))
    compression_type: str = _key(
        "compression.type", _parse_choice("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), "producer"
    )
    compression_gzip_level: int = _key("compression.gzip.level", _parse_gzip_level, -1)
    compression_lz4_level: int = _key("compression.lz4.level", _parse_int(1, 17), 9)
    compression_zstd_level: int = _key("compression.zstd.level", _parse_int(-131072, 22), 3)
    delete_retention_ms: int = _key("delete.retention.ms", _LONG, 86_400_000)
    file_delete_delay_ms: int = _key("file.delete.delay.ms", _LONG, 60_000)
    flush_messages: int = _key("flush.messages", _POSITIVE_LONG, LONG_MAX)
    flush_ms: int = _key("flush.ms", _LONG, LONG_MAX)
    follower_replication_throttled_replicas: tuple[str, ...] = _key(
        "follower.replication.throttled.replicas", _parse_replicas, ()
    )
    index_interval_bytes: int = _key("index.interval.bytes", _INT, 4096)
    leader_replication_throttled_replicas: tuple[str, ...] = _key(
        "leader.replication.throttled.replicas", _parse_replicas, ()
    )
    local_retention_bytes: int = _key("local.retention.bytes", _parse_int(-2, LONG_MAX), -2)
    local_retention_ms: int = _key("local.retention.ms", _parse_int(-2, LONG_MAX), -2)
    max_compaction_lag_ms: int = _key("max.compaction.lag.ms", _POSITIVE_LONG, LONG_MAX)
    max_message_bytes: int = _key("max.message.bytes", _INT, 1_048_588)
    message_timestamp_after_max_ms: int = _key("message.timestamp.after.max.ms", _LONG, 3_600_000)
    message_timestamp_before_max_ms: int = _key("message.timestamp.before.max.ms", _LONG, LONG_MAX)
    message_timestamp_type: str = _key(
        "message.timestamp.type", _parse_choice("CreateTime", "LogAppendTime"), "CreateTime"
    )
    min_cleanable_dirty_ratio: float = _key("min.cleanable.dirty.ratio", _parse_float(0, 1), 0.5)
    min_compaction_lag_ms: int = _key("min.compaction.lag.ms", _LONG, 0)
    min_insync_replicas: int = _key("min.insync.replicas", _parse_int(1, INT_MAX), 1)
    preallocate: bool = _key("preallocate", _parse_bool, False)
    remote_log_copy_disable: bool = _key("remote.log.copy.disable", _parse_bool, False)
    remote_log_delete_on_disable: bool = _key("remote.log.delete.on.disable", _parse_bool, False)
    remote_storage_enable: bool = _key("remote.storage.enable", _parse_bool, False)
    retention_bytes: int = _key("retention.bytes", _parse_int(-(2**63), LONG_MAX), -1)
    retention_ms: int = _key("retention.ms", _parse_int(-1, LONG_MAX), 604_800_000)
    segment_bytes: int = _key("segment.bytes", _parse_int(1_048_576, INT_MAX), 1_073_741_824)
    segment_index_bytes: int = _key("segment.index.bytes", _parse_int(4, INT_MAX), 10_485_760)
    segment_jitter_ms: int = _key("segment.jitter.ms", _LONG, 0)
    segment_ms: int = _key("segment.ms", _POSITIVE_LONG, 604_800_000)
    unclean_leader_election_enable: bool = _key("unclean.leader.election.enable", _parse_bool, False)

    # Like Kafka's internal.segment.bytes: small segments for tests, past the lower bound that users are held to.
    internal_segment_bytes: int | None = _key("internal.segment.bytes", _parse_int(0, INT_MAX), None)

    # Derived once, since every append asks for them.
    roll_bytes: int = field(init=False, repr=False, compare=False)
    roll_ms: int = field(init=False, repr=False, compare=False)
    is_compacted: bool = field(init=False, repr=False, compare=False)
    keeps_plain_batches: bool = field(init=False, repr=False, compare=False)  # as a producer sends them, uncompressed

    def __post_init__(self) -> None:
        compacted = "compact" in self.cleanup_policy
        derived = {
            # The size at which a segment is sealed, and the age: a compacted one has to be, to be cleaned in time.
            "roll_bytes": self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes,
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
    def parse(cls, settings: Mapping[str, str]) -> TopicConfig:
        """A config from a topic's own settings, Kafka's defaults for the rest; InvalidConfig names the bad key."""
        known = {f.metadata["key"]: f for f in fields(cls) if f.init}
        values: dict[str, Any] = {}
        for name, text in settings.items():
            if name not in known:
                raise InvalidConfig(f"unknown topic config: {name}")
            try:
                values[known[name].name] = known[name].metadata["parse"](text.strip())
            except ValueError as error:
                raise InvalidConfig(f"invalid value {text!r} for {name}: {error}") from None
        config = cls(**values)
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise InvalidConfig("min.compaction.lag.ms must not exceed max.compaction.lag.ms")
        return config
