"""Random broker settings and topic configs that both brokers allow.

No time limit lies near a timestamp that `record_data.py` draws, so neither the speed of a run nor a random roll jitter
changes a response. Retention and cleaning, which depend on the clock, are off.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
_LONG: Final = str(2**63 - 1)

FIXED: Final = {
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    "log.cleaner.enable": "false",
    "group.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "600000",
    "group.consumer.max.session.timeout.ms": "1800000",
    "transaction.max.timeout.ms": "900000",
    "transaction.partition.verification.enable": "true",
}

_BROKER: Final[dict[str, tuple[str, ...]]] = {
    "message.max.bytes": ("1048588", "1048588", "500", "3000", "100000"),
    "log.message.timestamp.type": ("CreateTime", "CreateTime", "LogAppendTime"),
    "log.message.timestamp.before.max.ms": (_LONG, str(DAY_MS), str(45 * DAY_MS)),
    "log.message.timestamp.after.max.ms": (str(HOUR_MS), str(10 * DAY_MS), _LONG),
    "compression.type": ("producer", "producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "log.segment.bytes": ("1073741824", "1048576"),
    "log.roll.ms": (str(7 * DAY_MS), str(10 * DAY_MS), str(40 * DAY_MS)),
    "log.roll.jitter.ms": ("0", str(DAY_MS)),
    "log.index.interval.bytes": ("4096", "0", "100", "1000"),
    "log.index.size.max.bytes": ("10485760", "4096", "64"),
    "min.insync.replicas": ("1", "2", "3"),
    "offset.metadata.max.bytes": ("4096", "0", "10", "100"),
    "fetch.max.bytes": ("57671680", "1024", "5000"),
    "max.incremental.fetch.session.cache.slots": ("1000", "0"),  # Kafka divides other numbers into eight parts
    "auto.create.topics.enable": ("false", "true"),
    "log.cleanup.policy": ("delete", "delete", "delete", "compact", "compact,delete"),
    "num.partitions": ("1", "2"),
    "transaction.partition.verification.enable": ("true", "true", "false"),
    "max.request.partition.size.limit": ("2000", "3"),
}

_TOPIC: Final[dict[str, tuple[str, ...]]] = {
    "max.message.bytes": ("1048588", "300", "1000"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "message.timestamp.before.max.ms": (_LONG, str(DAY_MS), str(45 * DAY_MS)),
    "message.timestamp.after.max.ms": (str(HOUR_MS), str(10 * DAY_MS), _LONG),
    "compression.type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "internal.segment.bytes": ("600", "2000", "20000"),
    "segment.ms": (str(10 * DAY_MS), str(40 * DAY_MS)),
    "segment.jitter.ms": ("0", str(DAY_MS)),
    "index.interval.bytes": ("0", "150", "4096"),
    "segment.index.bytes": ("48", "4096"),
    "min.insync.replicas": ("1", "2"),
    "cleanup.policy": ("delete", "compact", "compact,delete", ""),
    "delete.retention.ms": ("0", "86400000"),
}


class Topic(NamedTuple):
    name: str
    partitions: int
    config: dict[str, str]
    has_append_time: bool


def draw_broker_settings(dice: Random) -> dict[str, str]:
    """Return the settings in which a broker of this seed differs from the defaults of the tests."""
    drawn = {name: dice.choice(values) for name, values in _BROKER.items() if dice.random() < 0.6}
    return {**FIXED, **drawn}


def draw_topics(dice: Random, settings: dict[str, str]) -> list[Topic]:
    """Return topics whose configs override some of the broker's settings."""
    topics = []
    for number in range(dice.choice([3, 4, 5])):
        config = {name: dice.choice(values) for name, values in _TOPIC.items() if number and dice.random() < 0.3}
        kind = config.get("message.timestamp.type", settings.get("log.message.timestamp.type", "CreateTime"))
        topics.append(Topic(f"topic-{number}", dice.choice([1, 1, 2, 3]), config, kind == "LogAppendTime"))
    return topics
