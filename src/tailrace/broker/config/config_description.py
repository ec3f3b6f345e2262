"""Config descriptions for DescribeConfigs: the values of a resource, their sources and their synonyms.

A value is shown in its normal form, not as it was written: ` 5` is shown as `5`, and a ratio of `1` as `1.0`. Its
synonyms are all places where it is set, the effective one first. Some keys mean the same in different units
(log.retention.ms, .minutes, .hours). As in Kafka, the synonyms of such a key begin with a place under its own name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.metadata.image.effective_config import ConfigSource
from tailrace.metadata.image.image import ALL_BROKERS, ConfigResource, MetadataImage, ResourceType
from tailrace.model.configs.config_definitions import ConfigKey, Value, definition, topic_synonyms
from tailrace.model.errors import ErrorCode, KafkaError

_UNITS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    is_sensitive: bool
    config_type: int  # the type's number in DescribeConfigs, 0 for an unknown key
    synonyms: tuple[Synonym, ...]


def describe_config(config: BrokerConfig, image: MetadataImage, resource: ConfigResource) -> list[DescribedConfig]:
    """Return the described keys of a resource, which must not be a logger.

    Raise KafkaError for an unknown resource, another broker, or a resource type without configs.
    """
    if resource.type == ResourceType.TOPIC:
        return _describe_topic(config, image, resource.name)
    if resource.type == ResourceType.BROKER:
        return _describe_broker(config, image, resource.name)
    if resource.type == ResourceType.GROUP:
        return _describe_group(config, image, resource)
    if resource.type == ResourceType.CLIENT_METRICS:
        return _describe_client_metrics(image, resource)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {resource.type} has no configuration")


def _describe_topic(config: BrokerConfig, image: MetadataImage, topic: str) -> list[DescribedConfig]:
    problem = name_problem(topic)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if topic not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    overrides = image.topic_config(topic)
    found = []
    for entry in config.effective.topic_entries(
        image, {k: v for k, v in overrides.items() if k in definition("topic")}
    ):
        name = entry.key.name
        value = value_text(entry.key, entry.key.parse_or_default(entry.value) if entry.value is not None else None)
        synonyms = [Synonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG)] if name in overrides else []
        first = topic_synonyms().get(name, (("", 1),))[0][0]
        synonyms += _broker_synonyms(config, image, first)
        found.append(_described(entry.key, value, synonyms, read_only=False))
    return found


def _describe_broker(config: BrokerConfig, image: MetadataImage, name: str) -> list[DescribedConfig]:
    keys = definition("broker")
    if not name:
        defaults = image.config(ALL_BROKERS)
        known = [
            _described(
                keys[one],
                None if keys[one].is_sensitive else text,
                [Synonym(one, None if keys[one].is_sensitive else text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)],
                read_only=keys[one].dynamic is None,
            )
            for one, text in defaults.items()
            if one in keys
        ]
        return [*known, *_describe_unknown([(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, defaults)])]
    if not name.isascii() or not name.lstrip("+-").isdigit():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not a broker id")
    if int(name) != config.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"this is broker {config.node_id}, not {name}")
    found = []
    for one, key in keys.items():
        synonyms = _broker_synonyms(config, image, one)
        if (key.internal or key.only_dynamic) and not any(s.source != ConfigSource.DEFAULT_CONFIG for s in synonyms):
            continue
        value = value_text(key, _effective_value(config, image, key))
        found.append(_described(key, value, synonyms, read_only=key.dynamic is None))
    return [*found, *_describe_unknown(config.effective.broker_layers(image))]


def _describe_unknown(layers: Iterable[tuple[ConfigSource, Mapping[str, str]]]) -> Iterator[DescribedConfig]:
    """Describe the settings that the broker does not know. Their values may be secrets and are not shown."""
    synonyms: dict[str, list[Synonym]] = {}
    for source, settings in layers:
        for name in settings.keys() - definition("broker").keys():
            synonyms.setdefault(name, []).append(Synonym(name, None, source))
    for name, found in sorted(synonyms.items()):
        yield DescribedConfig(name, None, found[0].source, True, True, 0, tuple(found))


def _effective_value(config: BrokerConfig, image: MetadataImage, key: ConfigKey) -> Value:
    """Return the current value. If the same setting was set at run time in another unit, return the default."""
    others = next((group for group in _UNITS if key.name in group), ())
    for source, settings in config.effective.broker_layers(image):
        is_dynamic = source != ConfigSource.STATIC_BROKER_CONFIG
        if is_dynamic and key.name not in settings and any(other in settings for other in others):
            return key.parse(key.default) if key.default is not None else None
    return config.current(key.name, image)


def _describe_group(config: BrokerConfig, image: MetadataImage, resource: ConfigResource) -> list[DescribedConfig]:
    if not resource.name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the group name is empty")
    overrides = image.config(resource)
    found = []
    for name, key in definition("group").items():
        synonyms = []
        if name in overrides:
            value = value_text(key, key.parse(overrides[name]))
            synonyms.append(Synonym(name, value, ConfigSource.GROUP_CONFIG))
        elif key.synonym is not None:
            value = value_text(key, config.current(key.synonym, image))
        else:
            value = key.default
        if key.synonym is not None:
            synonyms += _broker_synonyms(config, image, key.synonym)
        else:
            synonyms.append(Synonym(name, key.default, ConfigSource.DEFAULT_CONFIG))
        found.append(_described(key, value, synonyms, read_only=False))
    return found


def _describe_client_metrics(image: MetadataImage, resource: ConfigResource) -> list[DescribedConfig]:
    if not resource.name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of the metrics subscription is empty")
    overrides = image.config(resource)
    found = []
    for name, key in definition("client_metrics").items():
        value = value_text(key, key.parse(overrides.get(name, key.default)))
        source = ConfigSource.CLIENT_METRICS_CONFIG if name in overrides else ConfigSource.DEFAULT_CONFIG
        synonyms = (Synonym(name, value, source),) if name in overrides else ()
        found.append(DescribedConfig(name, value, source, False, False, key.type_code, synonyms))
    return found


def _described(key: ConfigKey, value: str | None, synonyms: Iterable[Synonym], *, read_only: bool) -> DescribedConfig:
    found = tuple(synonyms)
    source = found[0].source if found else ConfigSource.DEFAULT_CONFIG
    shown = None if key.is_sensitive else value
    return DescribedConfig(key.name, shown, source, read_only, key.is_sensitive, key.type_code, found)


def _broker_synonyms(config: BrokerConfig, image: MetadataImage, name: str) -> list[Synonym]:
    """Return the places where a broker's key is set, the effective one first.

    Places under a name with another unit are left out if they come before the first place under the key's own name.
    """
    key = definition("broker").get(name)
    if key is None:
        return []
    names = next((group for group in _UNITS if name in group), _FLUSH if name == _FLUSH[0] else (name,))
    # A key that can only be set at run time has neither a static value nor a default.
    keys = [] if key.only_dynamic else [definition("broker")[one] for one in names]
    defaults = {one.name: one.default for one in keys if one.default is not None}
    layers: list[tuple[ConfigSource, Mapping[str, str]]] = [
        *config.effective.broker_layers(image),
        (ConfigSource.DEFAULT_CONFIG, defaults),
    ]
    found = [
        Synonym(one, None if key.is_sensitive else settings[one], source)
        for source, settings in layers
        for one in names
        if one in settings
    ]
    while found and found[0].name != name:
        found.pop(0)
    return found


def value_text(key: ConfigKey, value: Value) -> str | None:
    """Return a value as Java writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(float(value)) if key.type == "double" else str(value)


def java_double(value: float) -> str:
    """Return a number as Java's Double.toString writes it: 1.0, 0.001, 1.0E-4, 1.0E7.

    Numbers from 0.001 up to (not including) 10 million have no exponent.
    """
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(value).partition("e")[0].replace(".", "").lstrip("-0").rstrip("0") or mantissa[0]
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"
