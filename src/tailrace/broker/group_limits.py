"""What the configuration of groups has to satisfy as a whole; a broker that contradicts itself does not start."""

from __future__ import annotations

from typing import Final

from tailrace.broker.broker_config import BrokerConfig
from tailrace.model.topic_config import InvalidConfig

_KINDS: Final = ("consumer", "share", "streams")
_LIMITED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")


def check_group_limits(config: BrokerConfig) -> None:
    """InvalidConfig, in Kafka's words."""
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


def _check_order(config: BrokerConfig, smaller: str, larger: str) -> None:
    if config.integer(larger) < config.integer(smaller):
        raise InvalidConfig(f"{larger} must be greater than or equal to {smaller}")
