"""SaslSettings: the SASL mechanisms of a listener, and the passwords of PLAIN.

    listener.name.NAME.plain.sasl.jaas.config=…PlainLoginModule required user_alice="secret";
    listener.name.NAME.sasl.enabled.mechanisms=SCRAM-SHA-512     without the prefix, for every listener

The credentials of SCRAM are in the metadata. Mechanisms that are not supported are refused when the broker starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.broker.config.listener_keys import MECHANISMS
from tailrace.broker.config.oauth_config import OauthSettings, oauth_of_listener
from tailrace.model.configs.config_definitions import definition
from tailrace.model.listener_settings import settings_of_listener
from tailrace.model.security import oauthbearer
from tailrace.model.security.jaas import parse_jaas
from tailrace.model.topic_config import InvalidConfig

_USER = "user_"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)  # of PLAIN
    session_ms: Mapping[str, int] = field(default_factory=dict)  # connections.max.reauth.ms, by mechanism; 0: unlimited
    token_bytes_max: int = 524_288
    oauth: OauthSettings | None = None  # with OAUTHBEARER


def sasl_of_listener(static: Mapping[str, str], name: str) -> SaslSettings:
    """Return the SASL settings of a listener. Raise InvalidConfig if they are invalid or not supported."""
    settings = settings_of_listener(static, name)
    keys = definition("broker")

    def integer(key: str) -> int:
        value = keys[key].parse(settings.get(key, keys[key].default))
        assert isinstance(value, int)
        return value

    mechanisms = _names(settings.get("sasl.enabled.mechanisms", "GSSAPI"))
    for mechanism in mechanisms:
        if mechanism not in MECHANISMS:
            raise InvalidConfig(
                f"sasl.enabled.mechanisms: {mechanism} of listener {name} is not supported; "
                f"use one of {', '.join(MECHANISMS)}"
            )
    if not mechanisms:
        raise InvalidConfig(f"sasl.enabled.mechanisms: listener {name} needs at least one of {', '.join(MECHANISMS)}")
    default_ms = integer("connections.max.reauth.ms")
    session_ms = {}
    for mechanism in mechanisms:
        own = settings.get(f"{mechanism.lower()}.connections.max.reauth.ms")
        value = default_ms if own is None else keys["connections.max.reauth.ms"].parse(own)
        assert isinstance(value, int)
        session_ms[mechanism] = value
    return SaslSettings(
        mechanisms=mechanisms,
        passwords=_passwords(settings, name) if "PLAIN" in mechanisms else {},
        session_ms=session_ms,
        token_bytes_max=integer("sasl.server.max.receive.size"),
        oauth=oauth_of_listener(settings, name) if oauthbearer.MECHANISM in mechanisms else None,
    )


def _passwords(settings: Mapping[str, str], name: str) -> dict[str, str]:
    key = "plain.sasl.jaas.config"
    module = parse_jaas(settings.get(key, ""))
    if module is None or not module.is_a("PlainLoginModule"):
        prefixed = f"listener.name.{name.lower()}.{key}"
        raise InvalidConfig(f'{prefixed}: PLAIN needs …PlainLoginModule required user_NAME="PASSWORD";')
    return {
        option.removeprefix(_USER): password for option, password in module.options.items() if option.startswith(_USER)
    }


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
