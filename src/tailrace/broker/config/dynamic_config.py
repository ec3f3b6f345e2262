"""Checks of broker settings that are changed while the broker runs.

In Kafka, a key is per-broker, cluster-wide or read-only. A read-only key is only read from server.properties. An
invalid change is refused with INVALID_REQUEST, as by Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.broker.config.config_support import Support, support_of
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig

# Kafka can change its listeners at run time. Tailrace binds listeners only at the start.
_BOUND_AT_START = ("listeners", "advertised.listeners", "listener.security.protocol.map")
# Keys that can be changed only with a listener prefix.
_ONLY_OF_LISTENERS = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")
# Kafka reads these keys again when they change. Tailrace reads them only at the start.
_READ_AT_START = ("ssl.", "sasl.", "connections.max.reauth.ms")
# Kafka allows a change of this key. It has no effect here, because Kerberos is refused at the start.
_OF_KERBEROS = "sasl.kerberos.min.time.before.relogin"
_LISTENER = "listener.name."


def _refuse(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def check_dynamic_config(settings: Mapping[str, str], per_broker: bool) -> None:
    """Raise KafkaError if a setting cannot be changed at all, to this value, or for this scope (one broker or all)."""
    keys = definition("broker")
    for name, text in settings.items():
        key = keys.get(name)
        if name.startswith(_LISTENER):
            _check_listener_config(name, per_broker)
            continue
        if key is None:
            continue  # Kafka accepts unknown keys for plug-ins; DescribeConfigs shows their names, not their values
        if key.dynamic is None or name in _BOUND_AT_START:
            raise _refuse(f"{name} cannot be changed while a broker runs; set it in server.properties")
        if name.startswith(_ONLY_OF_LISTENERS):
            raise _refuse(f"{name} can only be changed for a listener: listener.name.NAME.{name}")
        if key.dynamic == "per-broker" and not per_broker:
            raise _refuse(f"{name} can only be changed for one broker at a time, not for all")
        try:
            value = key.parse(text)
            default = key.parse(key.default) if key.default is not None else None
        except InvalidConfig as error:
            raise _refuse(str(error)) from error
        if name == _OF_KERBEROS:
            continue
        if name.startswith(_READ_AT_START) and value != default:
            raise _refuse(f"{name} cannot be changed at run time: it is read when a broker starts")
        if support_of(name) is Support.NOT_SUPPORTED and value != default:
            raise _refuse(f"{name} is not supported: only its default, {key.default}, is allowed")
    _check_together(settings)


def _check_listener_config(name: str, per_broker: bool) -> None:
    key = name.removeprefix(_LISTENER).partition(".")[2]
    if not per_broker:
        raise _refuse(f"{name} can only be changed for one broker at a time, not for all")
    if any(key.endswith(known) for known in definition("broker")):
        raise _refuse(f"{name} cannot be changed at run time: settings of listeners are read when a broker starts")


def _check_together(settings: Mapping[str, str]) -> None:
    keys = definition("broker")

    def value(name: str) -> int:
        found = keys[name].parse(settings.get(name, keys[name].default))
        assert isinstance(found, int)
        return found

    low, high = value("log.cleaner.min.compaction.lag.ms"), value("log.cleaner.max.compaction.lag.ms")
    if low > high:
        raise _refuse(f"log.cleaner.min.compaction.lag.ms ({low}) exceeds log.cleaner.max.compaction.lag.ms ({high})")
