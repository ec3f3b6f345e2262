"""Recipe: a description of one expensive request, from which its bytes are built for any broker.

A recipe names an API, a version, the array that fills the request, and the kind of the values in it. Topic ids and
group names differ from broker to broker, so a recipe is built against the `Names` of one broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.codegen.schema import Field, StructSchema
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.primitives import uvarint
from tailrace.protocol.registry import request_class
from tests.costs.values import Kind, Names, number_value, string_value, uuid_value
from tests.fuzz.bytes_mutator import with_invalid_text

SIZE_MAX = 1_000_000
_TAG = 20_000  # above every tag that Kafka uses
_ALIKE = (Kind.MINIMAL, Kind.SAME, Kind.NULL, Kind.INVALID)


@dataclass(frozen=True, slots=True)
class Recipe:
    api: ApiKey
    version: int
    kind: Kind = Kind.MINIMAL
    fill: str = ""  # the path of the array that is filled up to `size`
    inner: int = 1  # elements of each array inside a filled one
    outer: int = 1  # elements of each array around the filled one
    tags: int = 0  # unknown tagged fields in each filled element, or in the request itself if nothing is filled
    size: int = SIZE_MAX
    values: tuple[tuple[str, Any], ...] = ()  # path → value of single fields, as (path, value)
    nulls: tuple[str, ...] = ()  # paths of fields that are null
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.note:
            return f"{self.note} (v{self.version})"
        words = [f"v{self.version}"]
        if self.fill:
            words.append(f"{self.fill} full of {self.kind}")
            if self.inner != 1:
                words.append(f"inner={self.inner}")
            if self.outer != 1:
                words.append(f"outer={self.outer}")
        elif self.kind is not Kind.MINIMAL:
            words.append(str(self.kind))
        if self.tags:
            words.append(f"{self.tags} tags" + (" each" if self.fill else ""))
        words += [f"{path}={_short(value)}" for path, value in self.values]
        words += [f"{path}=null" for path in self.nulls]
        return ", ".join(words)

    def frame(self, names: Names) -> bytes:
        """Return the request's bytes, without the length prefix, at most `size` of them."""
        header = write_request_header(RequestHeader(self.api, self.version, 1, "costs"))
        count = 1
        body = self._encode(names, count)
        if self.fill:
            more = self._encode(names, 33)
            each = max(1.0, (len(more) - len(body)) / 32)
            count = max(1, int((self.size - len(header) - len(body)) / each))
            body = self._encode(names, count)
            while len(header) + len(body) > self.size and count > 1:
                count = min(count - 1, int(count * (self.size - len(header)) / len(body)))
                body = self._encode(names, count)
        frame = header + body
        return with_invalid_text(frame) if self.kind is Kind.INVALID else frame

    def with_value(self, path: str, value: Any) -> Recipe:
        """Return the recipe with one field set."""
        kept = tuple(one for one in self.values if one[0] != path)
        return replace(self, values=(*kept, (path, value)))

    def _encode(self, names: Names, count: int) -> bytes:
        return _Builder(self, names, count).message().encode(self.version)


class _Builder:
    """The message of a recipe whose filled array has `count` elements."""

    def __init__(self, recipe: Recipe, names: Names, count: int) -> None:
        self._recipe = recipe
        self._names = names
        self._count = count
        self._class: type[Message] = request_class(recipe.api)
        self._values = dict(recipe.values)

    def message(self) -> Message:
        message = self._class()
        self._set_fields(message, self._class.SCHEMA, "", 0)
        if not self._recipe.fill:
            self._set_tags(message)
        return message

    def _set_tags(self, struct: Struct) -> None:
        if self._recipe.tags and self._recipe.version in self._class.SCHEMA.flexible:
            struct.unknown_tags = [(_TAG + number, b"") for number in range(self._recipe.tags)]

    def _set_fields(self, struct: Struct, schema: StructSchema, prefix: str, index: int) -> None:
        for one in schema.fields:
            if self._recipe.version in one.versions:
                if one.element == "uuid" and self._has_name(schema, prefix):
                    continue  # a topic has a name or an id
                value = self._value(one, prefix + one.attribute, index)
                if value is not ...:
                    setattr(struct, one.attribute, value)

    def _has_name(self, schema: StructSchema, prefix: str) -> bool:
        recipe = self._recipe
        if recipe.kind is Kind.NULL or f"{prefix}name" in recipe.nulls:
            return False
        return any(one.attribute == "name" and recipe.version in one.versions for one in schema.fields)

    def _value(self, one: Field, path: str, index: int) -> Any:
        """Return the value of a field; Ellipsis leaves the default."""
        recipe = self._recipe
        if path in self._values:
            return self._names.resolve(self._values[path])
        nullable = recipe.version in one.nullable
        if nullable and path in recipe.nulls:
            return None
        if one.is_array:
            if nullable and not recipe.fill.startswith(path) and self._is_optional(one):
                return ...
            return self._elements(one, path)
        if nullable and recipe.kind is Kind.NULL:
            return None
        if one.struct is not None:
            # A nullable struct is built only where a recipe fills something in it.
            return self._struct(one, path, index) if recipe.fill.startswith(path + ".") or not nullable else ...
        return self._scalar(one, path, index)

    def _is_optional(self, one: Field) -> bool:
        return one.default is None

    def _elements(self, one: Field, path: str) -> Any:
        recipe = self._recipe
        if path == recipe.fill:
            count = self._count
        elif recipe.fill.startswith(path + "."):
            count = recipe.outer
        elif path.startswith(recipe.fill + ".") or not recipe.fill:
            count = recipe.inner
        else:
            count = 0
        if count and recipe.kind in _ALIKE:
            return [self._element(one, path, 0)] * count
        return [self._element(one, path, number) for number in range(count)]

    def _element(self, one: Field, path: str, index: int) -> Any:
        if one.struct is not None:
            return self._struct(one, path, index)
        return self._scalar(one, path, index)

    def _struct(self, one: Field, path: str, index: int) -> Struct:
        assert one.struct is not None
        struct = self._class.STRUCTS[one.struct]()
        self._set_fields(struct, one.struct, path + ".", index)
        if path == self._recipe.fill:
            self._set_tags(struct)
        return struct

    def _scalar(self, one: Field, path: str, index: int) -> Any:
        kind, names, api = self._recipe.kind, self._names, self._recipe.api
        if one.element == "string":
            return string_value(names, api, one, kind, index)
        if one.element == "uuid":
            return uuid_value(names, kind, index)
        if one.element == "bytes":
            return b"" if kind is Kind.MINIMAL else b"x"
        if one.element == "records":
            return names.batch
        if one.element in ("bool", "float64"):
            return ... if one.element == "bool" else 1.0
        return number_value(names, one, kind, index)


def tag_size() -> int:
    """Return how many bytes an unknown tagged field without content takes."""
    return len(uvarint(_TAG)) + 1


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:24]}… ({len(text)} characters)"
