"""Checks of a change of a broker's settings against its current settings.

A change may at most halve or double a number of threads. Tailrace has only some of these thread pools, but it refuses
the same changes as Kafka, because Kafka's brokers may be in the same cluster. Only the broker's own log directories can
be cordoned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.dynamic_config import check_dynamic_config
from tailrace.broker.storage.cordoned_directories import CORDONED, check_cordoned
from tailrace.metadata.image.image import ALL_BROKERS, MetadataImage, broker_resource
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig

_COUNTS: Final = ("num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads")


def check_broker_change(
    config: BrokerConfig, image: MetadataImage, settings: Mapping[str, str], per_broker: bool
) -> None:
    """Raise KafkaError for a change that this broker, or all brokers, cannot apply."""
    check_dynamic_config(settings, per_broker)
    if CORDONED in settings:
        names = definition("broker")[CORDONED].parse(settings[CORDONED])
        assert isinstance(names, tuple)
        try:
            check_cordoned(names, config.log_dirs)
        except InvalidConfig as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    _check_assignment_intervals(config, settings)
    own, common = image.config(broker_resource(config.node_id)), image.config(ALL_BROKERS)
    layers = (settings, common) if per_broker else (own, settings)
    for name in _COUNTS:
        now = config.current_integer(name, image)
        texts = [layer[name] for layer in layers if name in layer]
        then = definition("broker")[name].parse(texts[0]) if texts else config.value(name)
        assert isinstance(then, int)
        if then == now:
            continue
        if then < now // 2:
            raise _refusal(name, then, f"value should be at least half the current value {now}")
        if then > now * 2:
            raise _refusal(name, then, f"value should not be greater than double the current value {now}")


def _check_assignment_intervals(config: BrokerConfig, settings: Mapping[str, str]) -> None:
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        low, high = f"group.{kind}.min.assignment.interval.ms", f"group.{kind}.max.assignment.interval.ms"
        if name not in settings:
            continue
        interval_ms = definition("broker")[name].parse(settings[name])
        assert isinstance(interval_ms, int)
        if not config.integer(low) <= interval_ms <= config.integer(high):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{name} is {interval_ms}; it must be between {config.integer(low)} ({low}) "
                f"and {config.integer(high)} ({high})",
            )


def _refusal(name: str, value: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST, f"Dynamic thread count update validation failed for {name}={value}, {reason}"
    )
