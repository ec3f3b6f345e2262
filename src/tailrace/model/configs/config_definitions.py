"""The configuration keys that Kafka knows, by type of resource, with type, default and allowed values.

The facts are in `kafka_configs.json`, extracted from Kafka's own classes. Values are strings, as users write them and
as records contain them. `ConfigKey.parse` converts a string by Java's rules, or raises an error that gives the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from tailrace.model.topic_config import InvalidConfig

ConfigType: TypeAlias = Literal["boolean", "string", "int", "short", "long", "double", "list", "class", "password"]
Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")  # at most 19 digits: int() raises ValueError for thousands
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_BITS = {"short": 16, "int": 32, "long": 64}
_BLANKS = "".join(map(chr, range(0x21)))  # the characters that Java's trim() removes

# The numbers of the types in DescribeConfigs responses.
TYPE_CODES: Final[Mapping[str, int]] = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


def java_integer(text: str) -> int | None:
    """Return the number of a text by Java's rules. Return None if it is not one, such as `1_000`, which `int` reads."""
    found = _INTEGER.fullmatch(text.strip(_BLANKS))
    return None if found is None else int(found[1] + found[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: str | None = None
    required: bool = False  # has no default
    min: float | None = None
    max: float | None = None
    allowed: tuple[str, ...] = ()
    allowed_in_any_case: tuple[str, ...] = ()
    distinct: bool = False  # a list without empty values; duplicates are ignored
    not_empty: bool = False
    check: str | None = None  # one of Kafka's own validators, by name
    internal: bool = False
    dynamic: Literal["per-broker", "cluster-wide"] | None = None
    only_dynamic: bool = False  # not allowed in server.properties
    synonym: str | None = None  # for a group config: the broker key that gives its default

    @property
    def is_sensitive(self) -> bool:
        return self.type == "password"

    @property
    def type_code(self) -> int:
        return TYPE_CODES[self.type]

    def parse(self, text: str | None) -> Value:
        """Return the value of a string. Raise InvalidConfig if the key does not allow it."""
        if text is None:
            value: Value = None
        else:
            text = text.strip(_BLANKS)
            value = self._read(text)
        self._check(value)
        return value

    def parse_or_default(self, text: str | None) -> Value:
        """Return the value of a text in the metadata, or the default if the text is not allowed."""
        try:
            return self.parse(text)
        except InvalidConfig:
            return self.parse(self.default)

    def _invalid(self, value: object, reason: str) -> InvalidConfig:
        shown = "[hidden]" if self.is_sensitive else value
        return InvalidConfig(f"Invalid value {shown} for configuration {self.name}: {reason}")

    def _read(self, text: str) -> Value:
        if self.type == "boolean":
            if text.lower() not in ("true", "false"):
                raise self._invalid(text, "it must be true or false")
            return text.lower() == "true"
        if self.type in _BITS:
            value = java_integer(text)
            limit = 1 << (_BITS[self.type] - 1)
            if value is None or not -limit <= value < limit:
                raise self._invalid(text, f"it must be a number of type {self.type.upper()}")
            return value
        if self.type == "double":
            if not _DOUBLE.fullmatch(text):
                raise self._invalid(text, "it must be a number of type DOUBLE")
            return float(text.rstrip("fFdD"))
        if self.type == "list":
            words = _COMMA.split(text) if text else []
            return tuple(dict.fromkeys(words) if self.distinct else words)
        return text

    def _check(self, value: Value) -> None:
        if self.min is not None or self.max is not None:
            if value is None:
                raise self._invalid(None, "it must not be empty")
            assert isinstance(value, int | float)
            if self.min is not None and not value >= self.min:
                raise self._invalid(value, f"it must be at least {self.min:g}")
            if self.max is not None and not value <= self.max:
                raise self._invalid(value, f"it must be at most {self.max:g}")
        if value is None:
            return
        words = value if isinstance(value, tuple) else (str(value),)
        if self.distinct and "" in words:
            raise self._invalid(",".join(words), "it must not have an empty element between two commas")
        if self.not_empty and not any(words):
            raise self._invalid("", "it must not be empty")
        if self.allowed and not set(words) <= set(self.allowed):
            raise self._invalid(value, f"it must be one of {', '.join(self.allowed)}")
        if self.allowed_in_any_case and str(value).upper() not in self.allowed_in_any_case:
            raise self._invalid(value, f"it must be one of {', '.join(self.allowed_in_any_case)}")
        if self.check is not None and self.check in _CHECKS and not _CHECKS[self.check](value):
            raise self._invalid(",".join(words), _REASONS[self.check])


def _is_replica_list(value: Value) -> bool:
    assert isinstance(value, tuple)
    return all(re.fullmatch(r"([0-9]+:[0-9]+)?", one) for one in value) or "".join(value) == "*"


_CHECKS: Final[Mapping[str, Callable[[Value], bool]]] = {
    "[1,...,9] or -1": lambda value: value == -1 or (isinstance(value, int) and 1 <= value <= 9),
    "ThrottledReplicaListValidator": _is_replica_list,
    # Kafka's validator of share.auto.offset.reset is an inner class of this name.
    "Validator": lambda value: bool(re.fullmatch(r"latest|earliest|by_duration:P.+", str(value))),
}
_REASONS: Final[Mapping[str, str]] = {
    "[1,...,9] or -1": "it must be -1 or from 1 to 9",
    "ThrottledReplicaListValidator": "it must be * or a list of partition:broker",
    "Validator": "it must be latest, earliest or by_duration: with an ISO 8601 duration",
}


class ConfigDefinition(Mapping[str, ConfigKey]):
    """The config keys of one type of resource."""

    def __init__(self, keys: Mapping[str, ConfigKey]) -> None:
        self._keys = keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def parse(self, settings: Mapping[str, str]) -> dict[str, Value]:
        """Return the values of settings. Unknown names are left out."""
        return {name: self._keys[name].parse(text) for name, text in settings.items() if name in self._keys}


@cache
def _facts() -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("kafka_configs.json").read_text())
    return facts


@cache
def definition(
    section: Literal["topic", "broker", "group", "client_metrics", "client_quota", "ip_quota"],
) -> ConfigDefinition:
    return ConfigDefinition({name: _key(name, facts) for name, facts in _facts()[section].items()})


def _key(name: str, facts: dict[str, Any]) -> ConfigKey:
    facts = dict(facts)
    return ConfigKey(
        name=name,
        required="default" not in facts,
        allowed=tuple(facts.pop("in", ())),
        allowed_in_any_case=tuple(facts.pop("in_any_case", ())),
        **facts,
    )


@cache
def topic_synonyms() -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Return for each topic key the broker keys that give its default, highest precedence first, each with the factor
    by which its value is multiplied."""
    return {
        name: tuple((other, factor) for other, factor in synonyms)
        for name, synonyms in _facts()["topic_synonyms"].items()
    }
