"""Settings of a Kafka client: from a profile, from --command-config FILE and from -X KEY=VALUE.

A later source overrides an earlier one. Settings may have the names of Kafka's Java clients, or those of librdkafka
(kcat) in `_TRANSLATED`. A properties file may be written for other tools as well, so its unknown settings are ignored.
An unknown setting in -X or in a profile is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from tailrace.cli.connection.profiles import Profile
from tailrace.cli.connection.properties_file import read_properties
from tailrace.cli.errors import CommandError
from tailrace.client.errors import ClientError
from tailrace.client.security.security import SETTINGS, Security, security_of
from tailrace.client.settings import ClientSettings

CLIENT_ID: Final = "client.id"
DEFAULT_CLIENT_ID: Final = ClientSettings().client_id
_USERNAME: Final = "sasl.username"
_PASSWORD: Final = "sasl.password"
_CERTIFICATE_FILE: Final = "ssl.certificate.location"
_KEY_FILE: Final = "ssl.key.location"
# Settings of librdkafka that have another name in Kafka's Java clients.
_TRANSLATED: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_COMBINED: Final = (_USERNAME, _PASSWORD, _CERTIFICATE_FILE, _KEY_FILE)
KNOWN: Final = frozenset({*SETTINGS, *_TRANSLATED, *_COMBINED, CLIENT_ID})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    security: Security
    client_id: str


def client_properties(profile: Profile, command_config: str | None, pairs: Sequence[str]) -> ClientProperties:
    """Return the settings of all sources. Raise CommandError if they are malformed or contradict each other."""
    found = client_mapping(profile, command_config, pairs)
    client_id = found.pop(CLIENT_ID, DEFAULT_CLIENT_ID)
    try:
        return ClientProperties(security=security_of(found), client_id=client_id)
    except ClientError as error:
        raise CommandError(f"{_origin(command_config, profile, pairs)}: {error}") from error


def client_mapping(profile: Profile, command_config: str | None, pairs: Sequence[str]) -> dict[str, str]:
    """Return the settings of all sources, with the names of Kafka's Java clients."""
    return _translated(_found(profile, command_config, pairs))


def given_settings(profile: Profile, command_config: str | None, pairs: Sequence[str]) -> dict[str, str]:
    """Return the settings of all sources that need no user: those of one who logs in later."""
    found = _found(profile, command_config, pairs)
    return {_TRANSLATED.get(name, name): text for name, text in found.items() if name not in _COMBINED}


def _found(profile: Profile, command_config: str | None, pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    path = profile.command_config if command_config is None else command_config
    if path == "":
        raise CommandError("--command-config is empty: give it a file of client settings")
    if path is not None:
        found |= {name: text for name, text in read_properties(path).items() if name in KNOWN}
    found |= _only_known(profile.settings, "the profile")
    found |= _only_known(dict(_pair(text) for text in pairs), "-X")
    return found


def _origin(command_config: str | None, profile: Profile, pairs: Sequence[str]) -> str:
    """Return the options that the settings came from, for an error."""
    names = [f"--command-config {command_config}"] if command_config is not None else []
    if profile.command_config or profile.settings:
        names.append("--profile")
    return " and ".join([*names, *["-X"] * bool(pairs)]) or "the security settings"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"-X {name.strip()!r} is not a setting: write -X KEY=VALUE")
    return name.strip(), value


def _only_known(settings: dict[str, str], where: str) -> dict[str, str]:
    for name in settings:
        if name not in KNOWN:
            close = get_close_matches(name, KNOWN, 1)
            hint = f"did you mean {close[0]}?" if close else "known are client.id, security.protocol, ssl.… and sasl.…"
            raise CommandError(f"{where} has the unknown setting {name} ({hint})")
    return settings


def _translated(settings: dict[str, str]) -> dict[str, str]:
    """Return the settings with the names of Kafka's Java clients."""
    found = {name: text for name, text in settings.items() if name not in _TRANSLATED and name not in _COMBINED}
    for name, kafkas in _TRANSLATED.items():
        if name in settings:
            if kafkas in settings:
                raise CommandError(f"{name} and {kafkas} are the same setting: give only one of them")
            found[kafkas] = settings[name]
    if "ssl.ca.location" in settings:
        found.setdefault("ssl.truststore.type", "PEM")
    _put_identity(settings, found)
    _put_jaas(settings, found)
    return found


def _put_identity(settings: dict[str, str], found: dict[str, str]) -> None:
    certificate, key = settings.get(_CERTIFICATE_FILE), settings.get(_KEY_FILE)
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise CommandError(f"{_CERTIFICATE_FILE} and {_KEY_FILE} must be set together")
    found["ssl.keystore.certificate.chain"] = _pem(certificate)
    found["ssl.keystore.key"] = _pem(key)


def _pem(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not a PEM file") from None


def _put_jaas(settings: dict[str, str], found: dict[str, str]) -> None:
    name, password = settings.get(_USERNAME), settings.get(_PASSWORD)
    if name is None and password is None:
        return
    if name is None or password is None:
        raise CommandError(f"{_USERNAME} and {_PASSWORD} must be set together")
    if "sasl.jaas.config" in settings:
        raise CommandError(f"{_USERNAME} and sasl.jaas.config are the same setting: give only one of them")
    kind = "Plain" if found.get("sasl.mechanism", "").strip().upper() == "PLAIN" else "Scram"
    found["sasl.jaas.config"] = (
        f"org.apache.kafka.common.security.{kind.lower()}.{kind}LoginModule required "
        f"username={_quoted(name)} password={_quoted(password)};"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
