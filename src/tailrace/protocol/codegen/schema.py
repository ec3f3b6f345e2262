"""Schemas: the fields of each version of a message.

`schemas/FAMILY/NAME.json` keeps Kafka's own terms. A field has a type, the versions that contain it, and possibly a
default. It may have versions in which it can be null, and versions in which it is tagged. A tagged field is optional
and numbered, follows the other fields, and is written only if it is not the default. In the flexible versions of a
message, lengths are varints and every struct ends with its tagged fields.

Families: `api` (requests and responses), `header`, `metadata` (records of `__cluster_metadata`), `group`, `transaction`
and `share` (keys and values of the coordinators' topics), `remote_log`, `data` (the rest).

Types: bool, int8, int16, int32, int64, uint16, uint32, float64, uuid, string, bytes, records, a struct's name, and `[]`
before any of these but records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tailrace.protocol.errors import UnsupportedVersion

SCHEMAS: Final = Path(__file__).parents[1] / "schemas"

ZERO_UUID: Final = bytes(16)
_ZEROS: Final[Mapping[str, Any]] = {
    "bool": False, "int8": 0, "int16": 0, "uint16": 0, "int32": 0, "uint32": 0, "int64": 0, "float64": 0.0,
    "uuid": ZERO_UUID, "string": "", "bytes": b"", "records": None,
}  # fmt: skip


def attribute_name(name: str) -> str:
    """Return Kafka's name for a field as a Python attribute: MaxWaitMs is max_wait_ms, KRaftVersion is
    kraft_version."""
    name = name.replace("KRaft", "Kraft").replace("2Pc", "2pc")
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


class Versions:
    """A range of versions, both ends included. It is empty if low exceeds high."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """Parse Kafka's notation: `3`, `3-5`, `3+` or `none`."""
        if text is None or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 32767)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __str__(self) -> str:
        if not self:
            return "none"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


class Field:
    """One field of a struct."""

    __slots__ = (
        "attribute", "default", "element", "entity_type", "flexible", "ignorable", "is_array", "json_name", "name",
        "nullable", "struct", "tag", "tagged", "type", "versions",
    )  # fmt: skip

    def __init__(self, facts: Mapping[str, Any], structs: Mapping[str, StructSchema]) -> None:
        self.name: str = facts["name"]
        self.attribute = attribute_name(self.name)
        self.json_name = self.name[0].lower() + self.name[1:]
        self.type: str = facts["type"]
        self.is_array = self.type.startswith("[]")
        self.element = self.type.removeprefix("[]")
        self.versions = Versions.parse(facts["versions"])
        self.nullable = Versions.parse(facts.get("nullableVersions"))
        self.tagged = Versions.parse(facts.get("taggedVersions"))
        self.tag: int | None = facts.get("tag")
        # Set if a field keeps fixed-width lengths in otherwise flexible versions (a header's client id).
        self.flexible = Versions.parse(facts["flexibleVersions"]) if "flexibleVersions" in facts else None
        self.ignorable: bool = facts.get("ignorable", False)
        self.entity_type: str | None = facts.get("entityType")
        self.struct: StructSchema | None = None
        if "fields" in facts:
            self.struct = StructSchema(self.element, facts["fields"], structs)
        elif self.element not in _ZEROS:
            self.struct = structs[self.element]
        # For arrays and structs: None, or Ellipsis, which stands for a new empty one.
        self.default: Any
        if "default" in facts:
            self.default = facts["default"]
        else:
            self.default = ... if self.is_array or self.struct else _ZEROS[self.element]

    def is_default(self, value: Any) -> bool:
        """Return True if the value is the field's default."""
        if self.default is not ...:
            return bool(value == self.default)
        if value is None:
            return False
        if self.struct is None or self.is_array:
            return len(value) == 0
        inside = ((inner, getattr(value, inner.attribute)) for inner in self.struct.fields)
        return not value.unknown_tags and all(inner.is_default(one) for inner, one in inside)

    def __repr__(self) -> str:
        return f"<Field {self.name}: {self.type}>"


class StructSchema:
    """A struct: its name within the message, and its fields in the order of encoding."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: Sequence[Mapping[str, Any]], structs: Mapping[str, StructSchema]) -> None:
        self.name = name
        self.fields = tuple(Field(facts, structs) for facts in fields)

    def untagged(self, version: int) -> list[Field]:
        """Return the untagged fields of a version."""
        return [field for field in self.fields if version in field.versions and version not in field.tagged]

    def tagged(self, version: int) -> list[Field]:
        """Return the tagged fields of a version, ordered by tag."""
        return sorted((field for field in self.fields if version in field.tagged), key=lambda field: field.tag or 0)

    def missing(self, version: int) -> list[Field]:
        """Return the fields that a version does not have."""
        return [field for field in self.fields if version not in field.versions]

    def holds_lists(self) -> bool:
        """Return True if a new struct contains lists."""
        return any(
            field.default is ... and (field.is_array or (field.struct is not None and field.struct.holds_lists()))
            for field in self.fields
        )

    def __repr__(self) -> str:
        return f"<StructSchema {self.name}>"


class MessageSchema(StructSchema):
    """A message: the outermost struct, and its versions."""

    __slots__ = ("api_key", "family", "flexible", "latest_version_unstable", "listeners", "removed", "type", "versions")

    def __init__(self, family: str, facts: Mapping[str, Any]) -> None:
        # A common struct may contain structs that are defined after it in the file.
        structs: dict[str, StructSchema] = {}
        waiting = list(facts.get("commonStructs", ()))
        while waiting:
            one = waiting.pop(0)
            try:
                structs[one["name"]] = StructSchema(one["name"], one["fields"], structs)
            except KeyError:
                waiting.append(one)
        super().__init__(facts["name"], facts["fields"], structs)
        self.family = family
        self.type: str = facts["type"]
        self.api_key: int | None = facts.get("apiKey")
        self.listeners: tuple[str, ...] = tuple(facts.get("listeners", ()))
        self.versions = Versions.parse(facts["validVersions"])
        self.removed = Versions.parse(facts.get("removedVersions"))
        self.latest_version_unstable: bool = facts.get("latestVersionUnstable", False)
        self.flexible = Versions.parse(facts["flexibleVersions"])


@cache
def index() -> Mapping[str, Any]:
    """Return the facts that need no schema: APIs, record types by number, and the names in each family."""
    facts: Mapping[str, Any] = json.loads((SCHEMAS / "index.json").read_bytes())
    return facts


@cache
def _family_of() -> Mapping[str, str]:
    return {name: family for family, names in index()["families"].items() for name in names}


def message_names() -> Sequence[str]:
    """Return the names of all messages."""
    return sorted(_family_of())


def load_schema(name: str) -> MessageSchema:
    """Return the schema of a message. Raise UnsupportedVersion if there is none of this name."""
    family = _family_of().get(name)
    if family is None:
        raise UnsupportedVersion(f"message {name} is unknown")
    return MessageSchema(family, json.loads((SCHEMAS / family / f"{name}.json").read_bytes()))
