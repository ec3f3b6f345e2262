"""Broker settings that change while the broker runs: which may, and to what.

Kafka calls a key per-broker or cluster-wide; the others are read from server.properties only. A refusal is
INVALID_REQUEST, as Kafka's is.
"""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.broker.config.config_support import Support, support_of
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig

# Kafka can move its listeners while it runs; ours are bound once.
_BOUND_AT_START = ("listeners", "advertised.listeners", "listener.security.protocol.map")
# They can be changed, but only for a listener.
_ONLY_OF_LISTENERS = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")
# Kafka reads them again when they change; ours are read when the broker starts.
_READ_AT_START = ("ssl.", "sasl.", "connections.max.reauth.ms")
# Kafka lets it change. It has no effect without Kerberos, which is refused at start.
_OF_KERBEROS = "sasl.kerberos.min.time.before.relogin"
_LISTENER = "listener.name."


def _refuse(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def check_dynamic_config(settings: Mapping[str, str], per_broker: bool) -> None:
    """Refuse what a broker, or all of them, could not be set to."""
    keys = definition("broker")
    for name, text in settings.items():
        key = keys.get(name)
        if name.startswith(_LISTENER):
            _check_listener_config(name, per_broker)
            continue
        if key is None:
            continue  # as Kafka does: a plug-in may know it; DescribeConfigs shows its name, but not its value
        if key.dynamic is None or name in _BOUND_AT_START:
            raise _refuse(f"{name} cannot be changed while a broker runs")
        if name.startswith(_ONLY_OF_LISTENERS):
            raise _refuse(f"{name} can be changed for a listener only")
        if key.dynamic == "per-broker" and not per_broker:
            raise _refuse(f"{name} can be changed for one broker at a time only")
        try:
            value = key.parse(text)
            default = key.parse(key.default) if key.default is not None else None
        except InvalidConfig as error:
            raise _refuse(str(error)) from error
        if name == _OF_KERBEROS:
            continue
        if name.startswith(_READ_AT_START) and value != default:
            raise _refuse(f"{name} is not supported: it is read when a broker starts")
        if support_of(name) is Support.NOT_SUPPORTED and value != default:
            raise _refuse(f"{name} is not supported: it can only have its default, {key.default}")
    _check_together(settings)


def _check_listener_config(name: str, per_broker: bool) -> None:
    key = name.removeprefix(_LISTENER).partition(".")[2]
    if not per_broker:
        raise _refuse(f"{name} can be changed for one broker at a time only")
    if any(key.endswith(known) for known in definition("broker")):
        raise _refuse(f"{name} is not supported: settings of listeners are read when a broker starts")


def _check_together(settings: Mapping[str, str]) -> None:
    keys = definition("broker")

    def value(name: str) -> int:
        found = keys[name].parse(settings.get(name, keys[name].default))
        assert isinstance(found, int)
        return found

    if value("log.cleaner.min.compaction.lag.ms") > value("log.cleaner.max.compaction.lag.ms"):
        raise _refuse("log.cleaner.min.compaction.lag.ms exceeds log.cleaner.max.compaction.lag.ms")
