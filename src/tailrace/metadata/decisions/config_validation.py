"""Validation of the configs of a topic, a group or a metrics subscription, taken together.

The config definitions check types and single values; this module checks names and the rules between values. Errors are
KafkaErrors with the codes of Kafka's controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tailrace.metadata.controller.control_state import ControlState
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.model.configs.config_definitions import ConfigDefinition, Value, definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig

Settings: TypeAlias = Mapping[str, str]

# Checks the configs of one broker (True) or of all: only the broker can do it, the controller cannot.
BrokerCheck: TypeAlias = Callable[[Settings, bool], None]


def validate_settings(state: ControlState, resource: ConfigResource, settings: Settings) -> None:
    """Raise a KafkaError for configs that a resource cannot have."""
    if resource.type == ResourceType.TOPIC:
        _validate_topic(state, resource.name, settings)
    elif resource.type == ResourceType.GROUP:
        _validate_group(state, resource.name, settings)
    elif resource.type == ResourceType.CLIENT_METRICS:
        _validate_client_metrics(resource.name, settings)
    elif resource.type == ResourceType.BROKER:
        if resource.name and not re.fullmatch(r"\+?[0-9]+", resource.name):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"'{resource.name}' is not a broker id; use a whole number of 0 or more"
            )
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {resource.type} has no configs")


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, reason)


def parse_settings(keys: ConfigDefinition, settings: Settings, owner: str) -> dict[str, Value]:
    """Return all parsed values. Raise INVALID_CONFIG for an unknown name or a value that is not allowed."""
    for name in settings:
        if name not in keys:
            raise _invalid(f"{name} is not a config of {owner}")
    try:
        return keys.parse(settings)
    except InvalidConfig as error:
        raise _invalid(str(error)) from error


def _validate_topic(state: ControlState, topic: str, settings: Settings) -> None:
    if not topic:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic's name is empty")
    problem = name_problem(topic)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    values = parse_settings(definition("topic"), settings, "a topic")

    def effective(name: str) -> Value:
        if name in values:
            return values[name]
        entry = state.configs.topic_entry(state.image, {}, name)
        return entry.key.parse(entry.value)

    shortest, longest = effective("min.compaction.lag.ms"), effective("max.compaction.lag.ms")
    if shortest > longest:  # type: ignore[operator]
        raise _invalid(f"min.compaction.lag.ms ({shortest}) must not exceed max.compaction.lag.ms ({longest})")
    is_enabled = state.static_flag("remote.log.storage.system.enable")
    problem = _remote_storage_problem(effective, state.image.topic_config(topic), is_enabled)
    if problem is not None:
        raise _invalid(problem)


_AS_WITHOUT_TIERS: Final = -2
_NO_LIMIT: Final = -1

_DISABLED = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)
_NOT_DELETED = (
    "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
)
_MORE_COPIES = " more logs copied to the remote storage."
_KEEPS_REMOTE_DATA = (
    "It is invalid to disable remote storage without deleting remote data. "
    "If you want to keep the remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. "
    "If you want to disable remote storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)


def _remote_storage_problem(
    effective: Callable[[str], Value], existing: Mapping[str, str], is_enabled: bool
) -> str | None:
    """Return what is wrong with the configs of a topic, or None. `existing` are its configs before the change, and
    `is_enabled` is True if the broker has tiered storage."""
    if effective("remote.storage.enable") is not True:
        was_enabled = existing.get("remote.storage.enable", "").strip().lower() == "true"
        keeps = was_enabled and effective("remote.log.delete.on.disable") is not True
        return _KEEPS_REMOTE_DATA if keeps else None
    if not is_enabled:
        return _DISABLED
    if effective("cleanup.policy") not in ((), ("delete",), frozenset(), frozenset({"delete"})):
        return _NOT_DELETED
    is_read_only = effective("remote.log.copy.disable") is True
    for unit in ("bytes", "ms"):
        problem = _local_problem(unit, effective)
        if problem is not None:
            return problem
    for unit in ("ms", "bytes"):
        if is_read_only and effective(f"local.retention.{unit}") not in (
            _AS_WITHOUT_TIERS,
            effective(f"retention.{unit}"),
        ):
            return (
                f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and `retention.{unit}` "
                "must be set to the identical value because there will be no" + _MORE_COPIES
            )
    return None


def _local_problem(unit: str, effective: Callable[[str], Value]) -> str | None:
    local, total = effective(f"local.retention.{unit}"), effective(f"retention.{unit}")
    assert isinstance(local, int)
    assert isinstance(total, int)
    if total <= _NO_LIMIT or local == _AS_WITHOUT_TIERS:
        return None
    start = f"Invalid value {local} for configuration local.retention.{unit}: Value must not be "
    if local == _NO_LIMIT:
        return f"{start}-1 as retention.{unit} value is set as {total}."
    if local > total:
        return f"{start}more than retention.{unit} property value: {total}"
    return None


# For each kind of group: a config that the broker's keys limit, and True if the limit only counts for a set value.
_GROUP_LIMITS: tuple[tuple[str, str, bool], ...] = (
    ("consumer", "heartbeat.interval.ms", False),
    ("consumer", "session.timeout.ms", False),
    ("consumer", "assignment.interval.ms", True),
    ("share", "heartbeat.interval.ms", False),
    ("share", "session.timeout.ms", False),
    ("share", "record.lock.duration.ms", False),
    ("share", "delivery.count.limit", False),
    ("share", "partition.max.record.locks", False),
    ("share", "assignment.interval.ms", True),
    ("streams", "heartbeat.interval.ms", False),
    ("streams", "session.timeout.ms", False),
    ("streams", "assignment.interval.ms", True),
)


def _validate_group(state: ControlState, group: str, settings: Settings) -> None:
    if not group:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the group's name is empty")
    keys = definition("group")
    values = parse_settings(keys, settings, "a group")

    def effective(name: str) -> int:
        value = values.get(name)
        if value is None:
            synonym = keys[name].synonym
            assert synonym is not None
            return state.static_int(synonym)
        assert isinstance(value, int)
        return value

    for kind, name, only_if_set in _GROUP_LIMITS:
        full = f"{kind}.{name}"
        if only_if_set and full not in values:
            continue
        low, high = f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
        if not state.static_int(low) <= effective(full) <= state.static_int(high):
            raise _invalid(
                f"{full} is {effective(full)}, outside {state.static_int(low)} ({low}) to {state.static_int(high)} "
                f"({high})"
            )
    standbys, most = effective("streams.num.standby.replicas"), state.static_int("group.streams.max.standby.replicas")
    if standbys > most:
        raise _invalid(f"streams.num.standby.replicas ({standbys}) exceeds group.streams.max.standby.replicas ({most})")
    for kind in ("consumer", "share", "streams"):
        session_ms, interval_ms = effective(f"{kind}.session.timeout.ms"), effective(f"{kind}.heartbeat.interval.ms")
        if session_ms <= interval_ms:
            raise _invalid(
                f"{kind}.session.timeout.ms ({session_ms}) must exceed {kind}.heartbeat.interval.ms ({interval_ms})"
            )


_MATCHED = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def _validate_client_metrics(subscription: str, settings: Settings) -> None:
    if not subscription:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the metrics subscription's name is empty")
    keys = definition("client_metrics")
    for name in settings:
        if name not in keys:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is not a config of a metrics subscription")
    values = parse_settings(keys, settings, "a metrics subscription")
    interval = values.get("interval.ms")
    if isinstance(interval, int) and not 100 <= interval <= 3_600_000:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"interval.ms must be from 100 to 3600000, not {interval}")
    patterns = values.get("match") or ()
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        name, *rest = pattern.rstrip("=").split("=")
        if len(rest) != 1 or name.strip() not in _MATCHED or not _is_pattern(rest[0].strip()):
            raise _invalid(
                f"'{pattern}' is not a match of clients: use <property>=<pattern>, with one of "
                f"{', '.join(sorted(_MATCHED))}"
            )


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
