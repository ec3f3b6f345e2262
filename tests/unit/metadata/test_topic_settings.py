"""Topic keys, their defaults and bounds: those of Kafka 4.3."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tailrace.model.configs.topic_settings import parse_topic_config, readable_topic_config
from tailrace.model.topic_config import INT_MAX, LONG_MAX, InvalidConfig, TopicConfig

# Key, default, smallest and largest value that Kafka takes.
NUMBERS = [
    ("compression.lz4.level", 9, 1, 17),
    ("compression.zstd.level", 3, -131072, 22),
    ("delete.retention.ms", 86_400_000, 0, LONG_MAX),
    ("file.delete.delay.ms", 60_000, 0, LONG_MAX),
    ("flush.messages", LONG_MAX, 1, LONG_MAX),
    ("flush.ms", LONG_MAX, 0, LONG_MAX),
    ("index.interval.bytes", 4096, 0, INT_MAX),
    ("local.retention.bytes", -2, -2, LONG_MAX),
    ("local.retention.ms", -2, -2, LONG_MAX),
    ("max.compaction.lag.ms", LONG_MAX, 1, LONG_MAX),
    ("max.message.bytes", 1_048_588, 0, INT_MAX),
    ("message.timestamp.after.max.ms", 3_600_000, 0, LONG_MAX),
    ("message.timestamp.before.max.ms", LONG_MAX, 0, LONG_MAX),
    ("min.compaction.lag.ms", 0, 0, LONG_MAX),
    ("min.insync.replicas", 1, 1, INT_MAX),
    ("retention.bytes", -1, -(2**63), LONG_MAX),
    ("retention.ms", 604_800_000, -1, LONG_MAX),
    ("segment.bytes", 1_073_741_824, 1_048_576, INT_MAX),
    ("segment.index.bytes", 10_485_760, 4, INT_MAX),
    ("segment.jitter.ms", 0, 0, LONG_MAX),
    ("segment.ms", 604_800_000, 1, LONG_MAX),
]
OTHERS = {
    "cleanup.policy": frozenset({"delete"}),
    "compression.gzip.level": -1,
    "compression.type": "producer",
    "follower.replication.throttled.replicas": (),
    "internal.segment.bytes": None,
    "leader.replication.throttled.replicas": (),
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": 0.5,
    "preallocate": False,
    "remote.log.copy.disable": False,
    "remote.log.delete.on.disable": False,
    "remote.storage.enable": False,
    "unclean.leader.election.enable": False,
}


# Values that Kafka accepts, which the broker once accepted and could not read again.
ONCE_FATAL = [
    ("cleanup.policy", "compact\0", frozenset({"compact"})),
    ("leader.replication.throttled.replicas", "0:1,", ("0:1", "")),
    ("leader.replication.throttled.replicas", "*\n\0", ("*",)),
    ("min.cleanable.dirty.ratio", ".5f", 0.5),
    ("internal.segment.bytes", "-1", -1),
]


def value(config: TopicConfig, key: str) -> object:
    return getattr(config, key.replace(".", "_"))


def test_the_config_keys_equal_kafkas() -> None:
    keys = {field.name.replace("_", ".") for field in fields(TopicConfig) if field.init}
    assert keys == {key for key, *_ in NUMBERS} | set(OTHERS)


def test_the_defaults_equal_kafkas() -> None:
    for config in (TopicConfig(), parse_topic_config({})):
        assert {key: value(config, key) for key, *_ in NUMBERS} == {key: default for key, default, *_ in NUMBERS}
        assert {key: value(config, key) for key in OTHERS} == OTHERS


@pytest.mark.parametrize(("key", "low", "high"), [(key, low, high) for key, _, low, high in NUMBERS])
def test_numbers_are_accepted_within_their_bounds(key: str, low: int, high: int) -> None:
    for number in (low, high):
        if key != "min.compaction.lag.ms" or number == low:
            assert value(parse_topic_config({key: str(number)}), key) == number
    for number in (low - 1, high + 1):
        with pytest.raises(InvalidConfig, match=f"Invalid value {number} for configuration {key}: it "):
            parse_topic_config({key: str(number)})


@pytest.mark.parametrize("text", ["", "x", "5.0", "1_000", "٣", "0x10", "5 5", "1" * 5_000])
def test_a_value_that_is_not_a_whole_number_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(
        InvalidConfig, match=f"Invalid value {text} for configuration retention.ms: it must be a number"
    ):
        parse_topic_config({"retention.ms": text})


@pytest.mark.parametrize("text", ["5", "+5", " 5 ", "005", "5\0", "0" * 5_000 + "5"])
def test_a_number_may_have_a_sign_and_space_around_it(text: str) -> None:
    assert parse_topic_config({"retention.ms": text}).retention_ms == 5


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("cleanup.policy", "compact", frozenset({"compact"})),
        ("cleanup.policy", " compact , delete ", frozenset({"compact", "delete"})),
        ("cleanup.policy", "", frozenset()),
        ("compression.type", "zstd", "zstd"),
        ("compression.gzip.level", "9", 9),
        ("compression.gzip.level", "-1", -1),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("preallocate", "TRUE", True),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,2:3", ("0:1", "2:3")),
        ("internal.segment.bytes", "10", 10),
        *ONCE_FATAL,
    ],
)
def test_values_of_every_type_are_parsed(key: str, text: str, expected: object) -> None:
    assert value(parse_topic_config({key: text}), key) == expected


@pytest.mark.parametrize(
    ("key", "text", "complaint"),
    [
        ("cleanup.policy", "Delete", "it must be one of compact, delete"),
        ("cleanup.policy", ",", "it must not have an empty element between two commas"),
        ("compression.type", "none", "it must be one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "it must be -1 or from 1 to 9"),
        ("message.timestamp.type", "createtime", "it must be one of CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1.5", "it must be at most 1"),
        ("min.cleanable.dirty.ratio", "NaN", "it must be at least 0"),
        ("min.cleanable.dirty.ratio", "half", "it must be a number of type DOUBLE"),
        ("preallocate", "yes", "it must be true or false"),
        ("leader.replication.throttled.replicas", "x", "it must be * or a list of partition:broker"),
    ],
)
def test_invalid_values_are_refused_in_one_sentence(key: str, text: str, complaint: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_topic_config({key: text})
    assert str(caught.value).startswith("Invalid value ")
    assert str(caught.value).endswith(f" for configuration {key}: {complaint}")


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(InvalidConfig, match=r"unknown topic config: retention\.mss"):
        parse_topic_config({"retention.mss": "5"})


def test_a_minimum_compaction_lag_above_the_maximum_is_refused() -> None:
    parse_topic_config({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "10"})
    with pytest.raises(InvalidConfig, match="exceeds"):
        parse_topic_config({"min.compaction.lag.ms": "11", "max.compaction.lag.ms": "10"})


def test_an_invalid_config_in_the_metadata_is_ignored_and_the_others_are_used() -> None:
    config, problems = readable_topic_config({"retention.ms": "soon", "segment.ms": "5", "no.such.key": "1"})
    assert config == TopicConfig(segment_ms=5)
    assert len(problems) == 2


def test_contradicting_compaction_lags_in_the_metadata_are_accepted() -> None:
    settings = {"min.compaction.lag.ms": "11", "max.compaction.lag.ms": "10"}
    config, problems = readable_topic_config(settings)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms, problems) == (11, 10, [])


def test_derived_values_follow_from_the_configs() -> None:
    plain = TopicConfig()
    assert (plain.is_compacted, plain.is_deleted_by_retention) == (False, True)
    assert (plain.roll_bytes, plain.roll_ms) == (1_073_741_824, 604_800_000)
    both = parse_topic_config({"cleanup.policy": "compact,delete", "max.compaction.lag.ms": "60000"})
    assert (both.is_compacted, both.is_deleted_by_retention, both.roll_ms) == (True, True, 60_000)
    assert TopicConfig(internal_segment_bytes=500).roll_bytes == 500
    assert TopicConfig(internal_segment_bytes=-1).roll_bytes == 0
    assert TopicConfig(max_compaction_lag_ms=5).roll_ms == 604_800_000, "only compacted logs have that lag"


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TopicConfig().retention_ms = 5  # type: ignore[misc]
