"""TopicConfig from settings: the strings that users write and that records carry.

`parse_topic_config` raises InvalidConfig for a setting that is not allowed. `readable_topic_config` is for settings in
the metadata: a setting there that is not allowed has no effect, since the topic and the broker must work without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tailrace.model.configs.config_definitions import definition
from tailrace.model.topic_config import InvalidConfig, TopicConfig

_CLEANUP: Final = "cleanup.policy"


def parse_topic_config(settings: Mapping[str, str]) -> TopicConfig:
    """Return the config of these settings. Raise InvalidConfig if Kafka would refuse one of them."""
    values = {name: _value(name, text) for name, text in settings.items()}
    config = TopicConfig.of(values)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise InvalidConfig(
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) exceeds max.compaction.lag.ms "
            f"({config.max_compaction_lag_ms})"
        )
    return config


def readable_topic_config(settings: Mapping[str, str]) -> tuple[TopicConfig, list[str]]:
    """Return the config of the allowed settings, and the reason for each setting that is not allowed."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, text in settings.items():
        try:
            values[name] = _value(name, text)
        except InvalidConfig as error:
            problems.append(str(error))
    return TopicConfig.of(values), problems


def _value(name: str, text: str) -> Any:
    key = definition("topic").get(name)
    if key is None:
        raise InvalidConfig(f"unknown topic config: {name}")
    value = key.parse(text)
    return frozenset(value) if name == _CLEANUP and isinstance(value, tuple) else value
