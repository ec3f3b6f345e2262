"""Minimum and maximum of group settings.

The broker's own configuration must be within them. A group's configuration is clamped to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.model.configs.config_definitions import definition
from tailrace.model.topic_config import InvalidConfig

_KINDS: Final = ("consumer", "share", "streams")
_LIMITED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_LIMITED_OF_SHARES: Final = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")


def check_group_limits(config: BrokerConfig) -> None:
    """Raise InvalidConfig, with Kafka's message, if the broker's group settings contradict each other."""
    if "classic" not in config.names("group.coordinator.rebalance.protocols"):
        raise InvalidConfig("Disabling the 'classic' protocol is not supported.")
    for kind in _KINDS:
        for name in _LIMITED:
            low, key, high = f"group.{kind}.min.{name}", f"group.{kind}.{name}", f"group.{kind}.max.{name}"
            _check_order(config, low, high)
            _check_order(config, low, key)
            if config.integer(key) > config.integer(high):
                raise InvalidConfig(f"{key} must be less than or equal to {high}")
        beat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if config.integer(beat) >= config.integer(session):
            raise InvalidConfig(f"{beat} must be less than {session}")
    copies, copies_max = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    if config.integer(copies) > config.integer(copies_max):
        raise InvalidConfig(f"{copies} must be less than or equal to {copies_max}")


def clamp_group_config(config: BrokerConfig, own: Mapping[str, str]) -> Mapping[str, str]:
    """Return a group's settings, clamped to the broker's limits, which may have changed since they were set.

    Unknown and invalid settings are left out.
    """
    clamped: dict[str, str] = {}
    for name, text in own.items():
        try:
            value = definition("group")[name].parse(text)
        except (KeyError, InvalidConfig):
            continue
        kind, _, key = name.partition(".")
        if isinstance(value, int) and name == "streams.num.standby.replicas":
            value = min(value, config.integer("group.streams.max.standby.replicas"))
        elif isinstance(value, int) and (key in _LIMITED or key in _LIMITED_OF_SHARES):
            low, high = config.integer(f"group.{kind}.min.{key}"), config.integer(f"group.{kind}.max.{key}")
            value = max(low, min(value, high))
        clamped[name] = str(value)
    return clamped


def _check_order(config: BrokerConfig, smaller: str, larger: str) -> None:
    if config.integer(larger) < config.integer(smaller):
        raise InvalidConfig(f"{larger} must be greater than or equal to {smaller}")
