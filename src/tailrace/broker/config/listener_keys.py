"""Keys that can be set for one listener: `listener.name.NAME.KEY`, and for SASL `listener.name.NAME.MECHANISM.KEY`."""

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
# Keys that need the mechanism's prefix.
_OF_MECHANISMS_ONLY: Final = (
    "sasl.jaas.config",
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", oauthbearer.MECHANISM)


def check_listener_key(name: str, text: str) -> None:
    """Raise InvalidConfig if a key cannot be set for a listener, or not to this value."""
    _, _, rest = name.removeprefix(PREFIX).partition(".")
    if rest in _OF_MECHANISMS_ONLY:
        raise InvalidConfig(f"{name} has no effect: put the mechanism before {rest}")
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
        raise InvalidConfig(f"{name} is not supported: {rest} cannot be set for a listener")
    value = key.parse(text)
    default = key.parse(key.default) if key.default is not None else None
    if value != default and support_of(rest) is Support.NOT_SUPPORTED:
        raise InvalidConfig(f"{name} is not supported: remove it, or set it to its default, {key.default}")


def check_listener_names(names: Iterable[str], listeners: Collection[str]) -> None:
    """Raise InvalidConfig for a setting of a listener that does not exist, because its name is probably misspelt."""
    for name in names:
        if name.startswith(PREFIX):
            listener = name.removeprefix(PREFIX).partition(".")[0]
            if listener.upper() not in listeners:
                raise InvalidConfig(f"{name}: listener {listener.upper()} does not exist; check the name")
