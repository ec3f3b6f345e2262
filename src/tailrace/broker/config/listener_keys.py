"""What may be set for one listener: `listener.name.NAME.KEY`, and for SASL `listener.name.NAME.MECHANISM.KEY`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from tailrace.broker.config.config_support import Support, support_of
from tailrace.model.configs.config_definitions import definition
from tailrace.model.listener_settings import PREFIX
from tailrace.model.security import oauthbearer
from tailrace.model.topic_config import InvalidConfig

_OF_LISTENERS: Final = ("ssl.", "sasl.", "connections.max.reauth.ms", "max.connections", "max.connection.creation.rate")
_OF_MECHANISMS: Final = ("sasl.jaas.config", "connections.max.reauth.ms")
_OF_OAUTHBEARER: Final = ("sasl.oauthbearer.", "sasl.login.", "sasl.server.callback.handler.class")
# What has no effect without a mechanism in front.
_OF_MECHANISMS_ONLY: Final = (
    "sasl.jaas.config",
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", oauthbearer.MECHANISM)


def check_listener_key(name: str, text: str) -> None:
    """InvalidConfig for what cannot be set for a listener, or not to that."""
    _, _, rest = name.removeprefix(PREFIX).partition(".")
    if rest in _OF_MECHANISMS_ONLY:
        raise InvalidConfig(f"{name} has no effect: a mechanism goes before {rest}")
    for mechanism in MECHANISMS:
        start = f"{mechanism.lower()}."
        if not rest.startswith(start):
            continue
        own = rest.removeprefix(start)
        if own in _OF_MECHANISMS or (mechanism == oauthbearer.MECHANISM and own.startswith(_OF_OAUTHBEARER)):
            rest = own
            break
    key = definition("broker").get(rest)
    if key is None or not rest.startswith(_OF_LISTENERS):
        raise InvalidConfig(f"{name} is not supported: there is no {rest} of a listener")
    value = key.parse(text)
    default = key.parse(key.default) if key.default is not None else None
    if value != default and support_of(rest) is Support.NOT_SUPPORTED:
        raise InvalidConfig(f"{name} is not supported: it can only have its default, {key.default}")


def check_listener_names(names: Iterable[str], listeners: Collection[str]) -> None:
    """Settings of a listener that there is not are a mistake in its name."""
    for name in names:
        if name.startswith(PREFIX):
            listener = name.removeprefix(PREFIX).partition(".")[0]
            if listener.upper() not in listeners:
                raise InvalidConfig(f"{name}: there is no listener {listener.upper()}")
