"""OptionValues: the options of a source or a sink. Names are compared in lower case, as Spark does.

Refused, ineffective and unknown options are reported by name, before anything else happens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from tailrace.client.errors import ClientError
from tailrace.client.network.bootstrap import parse_bootstrap
from tailrace.client.security.security import SETTINGS as SECURITY_SETTINGS
from tailrace.client.security.security import security_of
from tailrace.client.settings import ClientSettings
from tailrace.spark.source.errors import WrongOption

_TIME = re.compile(r"([0-9]+)\s*(ms|s|m|min|h|d)?")
_UNITS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE = re.compile(r"([0-9]+)\s*([kmg]?)b?")
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
TOTAL_TIMEOUT = "kafka.default.api.timeout.ms"
# Options about the cluster, for both source and sink.
CLUSTER_OPTIONS = (
    "kafka.bootstrap.servers",
    "kafka.client.id",
    *(f"kafka.{name}" for name in SECURITY_SETTINGS),
    "kafka.request.timeout.ms",
    "kafka.socket.connection.setup.timeout.ms",
    "kafka.retry.backoff.ms",
    "kafka.retry.backoff.max.ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNames:
    """The known options: own ones as written, Kafka's in lower case, and those that are refused or have no effect."""

    own: Collection[str]
    kafka: Collection[str]
    refused: Mapping[str, str] = field(default_factory=dict)  # name → reason
    without_effect: Collection[str] = ()
    why_without: str = ""


class OptionValues:
    def __init__(self, given: Mapping[str, str], names: OptionNames) -> None:
        self._names = names
        self._values = {name.lower(): value for name, value in given.items()}
        self.warnings: list[str] = []

    def check_names(self) -> None:
        names = self._names
        own = {name.lower(): name for name in names.own}
        for name in self._values:
            if name in names.refused:
                raise WrongOption(f"{name} cannot be set: {names.refused[name]}")
            if name in names.without_effect:
                self.warnings.append(f"{name} has no effect: {names.why_without}")
            elif name not in own and name not in names.kafka:
                close = get_close_matches(name, [*own, *names.kafka], 1)
                hint = f"; did you mean {own.get(close[0], close[0])}?" if close else ""
                raise WrongOption(f"there is no option {name}{hint}")

    def given_of(self, names: Collection[str]) -> list[str]:
        """Return the names, in lower case, that are set."""
        return [name for name in self._values if name in names]

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def security(self) -> dict[str, str]:
        """Return Kafka's security settings that are set, by Kafka's names."""
        names = {name: self.get(f"kafka.{name}") for name in SECURITY_SETTINGS}
        return {name: value for name, value in names.items() if value is not None}

    def flag(self, name: str, *, default: bool = False) -> bool:
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = (self.get(name) or default).strip().lower()
        if value not in choices:
            raise WrongOption(f"{name} is {self.get(name)!r}; it must be {' or '.join(choices)}")
        return value

    def count(self, name: str, default: int | None = None) -> int | None:
        value = self.get(name)
        if value is None:
            return default
        if not value.strip().isdecimal() or int(value) < 1:
            raise WrongOption(f"{name} is {value!r}; it must be a whole number of at least 1")
        return int(value)

    def number(self, name: str, default: int) -> int:
        return self.count(name, default) or default

    def duration(self, name: str, default: int) -> int:
        return self._measured(name, default, _TIME, _UNITS, "a time such as 500ms, 30s or 15m")

    def size(self, name: str, default: int) -> int:
        return self._measured(name, default, _SIZE, _SIZES, "a size such as 134217728 or 128m")

    def _measured(self, name: str, default: int, form: re.Pattern[str], units: dict[str, int], expected: str) -> int:
        value = self.get(name)
        if value is None:
            return default
        found = form.fullmatch(value.strip().lower())
        if found is None or int(found[1]) == 0:
            raise WrongOption(f"{name} is {value!r}; it must be {expected}")
        return int(found[1]) * units[found[2] or ""]


def client_settings_of(bootstrap: str, properties: Mapping[str, str]) -> ClientSettings:
    """Return the client settings for properties of a Kafka client. Raise WrongOption if they are wrong."""
    named = {"kafka.bootstrap.servers": bootstrap, **{f"kafka.{name}": value for name, value in properties.items()}}
    return client_settings(OptionValues(named, OptionNames(own=(), kafka=CLUSTER_OPTIONS)), TOTAL_TIMEOUT)


def client_settings(options: OptionValues, total_timeout: str) -> ClientSettings:
    """Return the client settings. `total_timeout` is the option for the time limit of a request with its retries."""
    settings = ClientSettings()
    try:
        parse_bootstrap(options.get("kafka.bootstrap.servers") or "")
        return ClientSettings(
            client_id=options.get("kafka.client.id") or "tailrace-spark",
            connect_timeout_ms=options.number("kafka.socket.connection.setup.timeout.ms", settings.connect_timeout_ms),
            request_timeout_ms=options.number("kafka.request.timeout.ms", settings.request_timeout_ms),
            total_timeout_ms=options.number(total_timeout, settings.total_timeout_ms),
            backoff_ms=options.number("kafka.retry.backoff.ms", settings.backoff_ms),
            backoff_max_ms=options.number("kafka.retry.backoff.max.ms", settings.backoff_max_ms),
            security=security_of(options.security()),
        )
    except ClientError as error:
        raise WrongOption(f"options kafka.…: {error}") from None
